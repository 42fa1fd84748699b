#!/usr/bin/env bash
# tools/sql/duckdb.sh: puts DuckDB's library, which queries of `shoal sql` need, where they find it: ~/.cache/shoal/duckdb
# (XDG_CACHE_HOME moves it). Called by script/bootstrap sql.
#
# The library is taken from DuckDB's own npm package in a fixed version, and its digest is checked here. Needs npm, but no
# root. Prints nothing if the library of this version is there already.
set -euo pipefail
. "$(dirname "$0")/../../script/shell.sh"

version=1.5.6-r.1
package=@duckdb/node-bindings-linux-x64
digest=3f4962cdd266eab2b479a5b5a4a6d063d279b2954ae814ed00385d553b747633 # of libduckdb.so
place=${XDG_CACHE_HOME:-$HOME/.cache}/shoal/duckdb
library=$place/libduckdb.so

[ "$(uname -sm)" = "Linux x86_64" ] ||
  die "DuckDB's library is fetched for Linux on x86-64 only; put your own at $library, or name it with SHOAL_DUCKDB"
if [ -e "$library" ] && [ "$(cat "$place/version" 2>/dev/null)" = "$version" ]; then exit 0; fi
command -v npm >/dev/null || die "there is no npm, which fetches DuckDB's library; put libduckdb.so of DuckDB's releases at $library"

mkdir -p "$place"
work=$(mktemp -d "$place/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "bootstrap: fetching DuckDB's library $version into $place"
(cd "$work" && npm pack --silent "$package@$version" </dev/null >npm.log 2>&1) || {
  tail -n 5 "$work/npm.log" >&2
  die "npm cannot fetch $package@$version. Is there a network?"
}
tar -C "$work" -xzf "$work"/*.tgz package/libduckdb.so package/LICENSE
echo "$digest  $work/package/libduckdb.so" | sha256sum --check --quiet - >&2 ||
  die "libduckdb.so of $package@$version is not the file that this checkout was tested with; it was not installed"
# The version last: a copy that was cut short is fetched again.
rm -f "$place/version"
mv -f "$work/package/LICENSE" "$work/package/libduckdb.so" "$place"
echo "$version" >"$place/version"
