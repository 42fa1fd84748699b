# What the scripts beside this file share; sourced, never run. Sets root (the checkout), jobs (how many compilers at
# once), and python (Debian's own, which the packages of
# tools/packages.txt belong to).
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=${SHOAL_JOBS:-$(nproc)}
python=/usr/bin/python3

# say TEXT…: a headline, so that a long log has landmarks.
say() { printf '\n== %s\n' "$*"; }

# die TEXT…: one clear sentence, exit 1.
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# usage_error TEXT…: the same for a wrong command line, exit 2.
usage_error() {
  printf '%s: %s (--help says what is allowed)\n' "$(basename "$0")" "$*" >&2
  exit 2
}

# print_help: the comment at the head of the calling script is its help.
print_help() { sed -n '2,/^[^#]/{s/^# \{0,1\}//;t show;b;:show;p}' "$0"; }

# build PRESET [TARGET…]: configures when there is no build yet, builds, and prints only what matters.
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
