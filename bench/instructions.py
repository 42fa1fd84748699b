"""Instructions of the parameter server's hot paths, counted by callgrind: without noise, so that every increase is a real change.

Runs ps_counts (src/ps/bench/instruction_counts_main.cc) for 200 operations a path. With --check, fails when a path takes over 5 % more than
docs/bench/instructions.json says. Counts are of the instruction sets that valgrind knows (AVX2), and of the compiler that
the record names, without which nothing is compared; a long memcpy counts a byte as one (rep movsb), which is most of what a
dense push has more than a pull."""
import json
import os
import re
import subprocess
import sys

import measure

PATHS = ["push-4kb", "pull-4kb", "push-dense", "pull-dense", "push-sparse", "pull-sparse"]
ROWS = {"push-4kb": 1, "pull-4kb": 1}
LIMIT = 1.05
TIMES = 200


def count(program, path):
    """Instructions of one operation."""
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*Measured*",
                           program, path, str(TIMES)], stderr=subprocess.PIPE, check=True, text=True)
    return round(int(re.search(r"Collected : (\d+)", done.stderr).group(1)) / TIMES)


def check(results, compiler):
    """Sentences about counts that exceed the record."""
    with open(os.path.join(measure.ROOT, "docs", "bench", "instructions.json"), encoding="utf-8") as f:
        record = json.load(f)
    if record["compiler"] != compiler:
        print(f"not compared: recorded with {record['compiler']}, this is {compiler}", file=sys.stderr)
        return []
    known = {r["path"]: r["instructions"] for r in record["results"]}
    return [f"{r['path']}: {r['instructions']:,} instructions, {r['instructions'] / known[r['path']] - 1:.1%} more than the "
            f"{known[r['path']]:,} recorded: make it cheaper, or say why in the commit and run script/bench instructions "
            "--record" for r in results if r["instructions"] > LIMIT * known.get(r["path"], sys.maxsize)]


def main():
    parser = measure.arguments(__doc__, "instructions")
    parser.add_argument("--check", action="store_true", help="fail when a path takes over 5 %% more than recorded")
    options = parser.parse_args()
    program = os.path.join(os.environ.get("SHOAL_BENCH_DIR") or os.path.join(measure.ROOT, "build", "release"), "src", "ps",
                           "ps_counts")
    if not os.path.exists(program):
        sys.exit(f"{os.path.relpath(program, measure.ROOT)} is not built: use script/bench instructions")
    results = []
    for path in PATHS:
        results.append({"path": path, "rows": ROWS.get(path, 250), "instructions": count(program, path)})
    compiler = subprocess.run(["c++", "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout.split("\n")[0]
    bad = check(results, compiler) if options.check else []
    measure.finish("instructions", options, {"compiler": compiler, "results": results},
                   [measure.table(["path", "rows", "instructions", "a row"],
                                  [[r["path"], r["rows"], r["instructions"], r["instructions"] / r["rows"]] for r in results])])
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    main()
