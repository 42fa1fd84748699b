# Shared functions of the scripts in this directory; sourced, never run. Sets root (the checkout), jobs (number of parallel
# compilers), and python (Debian's own, to which the packages of
# tools/packages.txt belong).
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=${SHOAL_JOBS:-$(nproc)}
python=/usr/bin/python3

# say TEXT…: prints a headline that structures a long log.
say() { printf '\n== %s\n' "$*"; }

# die TEXT…: prints an error message and exits with 1.
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# usage_error TEXT…: the same for a wrong command line, with exit code 2.
usage_error() {
  printf '%s: %s (--help says what is allowed)\n' "$(basename "$0")" "$*" >&2
  exit 2
}

# print_help: the comment at the head of the calling script is its help.
print_help() { sed -n '2,/^[^#]/{s/^# \{0,1\}//;t show;b;:show;p}' "$0"; }

# build PRESET [TARGET…]: configures if there is no build yet, builds, and prints only the essential output.
build() {
  local preset=$1
  shift
  local log="$root/build/$preset.configure.log"
  mkdir -p "$root/build"
  if ! cmake -S "$root" --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    die "configuring the preset $preset failed"
  fi
  cmake --build "$root/build/$preset" -j "$jobs" ${@:+--target "$@"} || die "building the preset $preset failed"
}
