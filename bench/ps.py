"""The parameter server's transports between two processes, beside the machine's own ceilings in the same run.

Runs ps_speed (src/ps/speed_main.cc) and shows medians over its interleaved rounds; with --sparse also the table of
10 M rows, which takes 6 GB of memory."""
import json
import os
import subprocess
import sys

import measure

DOORS = ["shared memory", "tcp"]


def run(program, rounds, words):
    done = subprocess.run([program, "--rounds", str(rounds), *words], stdout=subprocess.PIPE, check=True, text=True)
    results = {}
    for line in done.stdout.splitlines():
        one = json.loads(line)
        results.setdefault((one["what"], one["unit"]), {}).setdefault(one["door"], []).append(one["value"])
    return results


def main():
    parser = measure.arguments(__doc__, "ps")
    parser.add_argument("--sparse", action="store_true", help="also the table of 10 M rows")
    options = parser.parse_args()
    program = os.path.join(os.environ.get("SHOAL_BENCH_DIR") or os.path.join(measure.ROOT, "build", "release"), "src", "ps",
                           "ps_speed")
    if not os.path.exists(program):
        sys.exit(f"{os.path.relpath(program, measure.ROOT)} is not built: use script/bench ps")
    results = run(program, options.rounds, [])
    if options.sparse:
        for key, doors in run(program, options.rounds, ["--sparse"]).items():
            results.setdefault(key, doors)
    ceilings, cells = [], []
    for (what, unit), doors in results.items():
        medians = {door: measure.median(values) for door, values in doors.items()}
        if "machine" in medians:
            ceilings.append([what, medians["machine"], unit])
        else:
            cells.append([what, *[medians.get(door) for door in DOORS + ["client", "server"]], unit])
    measure.finish("ps", options,
                   {"results": [{"what": what, "unit": unit, "rounds": doors} for (what, unit), doors in results.items()]},
                   [measure.table(["machine", "median", "unit"], ceilings),
                    measure.table(["parameter server", *DOORS, "client", "server", "unit"], cells)])


if __name__ == "__main__":
    main()
