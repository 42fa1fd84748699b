# How each cluster's script begins; sourced by it. Sets here and root. The script's arguments become words (names of tests, --slow), or,
# behind --, stay the command to run.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

# skip TEXT…: it cannot be done here, and why.
skip() { echo "skipped: $*"; exit 77; }

# need REMEDY PROGRAM…: all of these are installed.
need() {
  local remedy=$1 program
  shift
  for program in "$@"; do command -v "$program" >/dev/null || skip "there is no $program here; $remedy"; done
}

# need_root DAEMONS
need_root() { [ "$(id -u)" = 0 ] || skip "$1 of this test run as root; this is user $(id -un)"; }

words=()
if [ "${1:-}" = -- ]; then shift; else words=("$@"); set --; fi

# run_faults ENGINE FEW MORE: so many seeded faults (tests/e2e/faults): MORE of them with --slow, none where single tests are named.
run_faults() {
  local count=$2
  [ ${#words[@]} = 0 ] || { [ "${words[0]}" = --slow ] && count=$3; } || return 0
  "${inside[@]}" /usr/bin/python3 -B "$root/tests/e2e/faults/fault_suite.py" --engine "$1" --shoal "$SHOAL_BIN" --runs "$count" --parallel 2 2>&1 |
    tee "$scratch/faults.log"
}
inside=(env)

# tell_sum NAME: the tests of $scratch/contract.log (GoogleTest's), $scratch/jobs.log (cluster_jobs.py's) and $scratch/faults.log (the fault
# suite's), in one line that script/ci reads.
tell_sum() {
  local files=("$scratch"/contract.log "$scratch"/jobs.log)
  sum() { { cat "${files[@]}" 2>/dev/null || true; } | awk -v what="$1" '$0 ~ what { for (i = 1; i <= NF; ++i) if ($i ~ /^[0-9]+$/) { n += $i; break } } END { print n + 0 }'; }
  local wrong failed
  wrong=$(sum '^jobs that went wrong: ')
  # GoogleTest's brief output has no sum of failures, only a line for each, with its time.
  failed=$(($({ cat "$scratch/contract.log" 2>/dev/null || true; } | grep -cE '^\[  FAILED  \] .* \([0-9]+ ms\)$' || true) + wrong))
  local good bad
  read -r good bad < <(sed -n 's/^faults: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$scratch/faults.log" 2>/dev/null || true; echo 0 0)
  echo "$1: $(($(sum '^\\[  PASSED  \\]') + $(sum '^Ran [0-9]+ test') - wrong + good)) passed, $((failed + bad)) failed"
}
