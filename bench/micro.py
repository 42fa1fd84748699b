"""A room's micro-benchmarks (Google Benchmark, NAME_bench.cc beside the code), repeated, as one table of medians."""
import json
import os
import subprocess
import sys

import measure


def main():
    room = sys.argv[1] if len(sys.argv) > 1 else ""
    sys.argv = [sys.argv[0]] + sys.argv[2:]
    parser = measure.arguments(__doc__, room)
    parser.add_argument("--filter", default="", help="only benchmarks whose name matches")
    options = parser.parse_args()
    program = os.path.join(os.environ.get("SHOAL_BENCH_DIR") or os.path.join(measure.ROOT, "build", "release"), "src", room,
                           f"{room}_bench")
    if not os.path.exists(program):
        sys.exit(f"{os.path.relpath(program, measure.ROOT)} is not built: src/{room} has no *_bench.cc, or use script/bench")
    done = subprocess.run([program, f"--benchmark_repetitions={options.rounds}", "--benchmark_report_aggregates_only=true",
                           "--benchmark_enable_random_interleaving=true", "--benchmark_format=json",
                           f"--benchmark_filter={options.filter}"], stdout=subprocess.PIPE, check=True)
    results = [b for b in json.loads(done.stdout)["benchmarks"] if b.get("aggregate_name") == "median"]
    cells = []
    for b in results:
        rate = b.get("items_per_second") or b.get("bytes_per_second")
        unit = "M items/s" if b.get("items_per_second") else "MB/s" if rate else None
        cells.append([b["run_name"], f"{b['real_time']:,.1f} {b['time_unit']}", rate and rate / 1e6, unit])
    lines = measure.table(["benchmark", "time", "rate", "unit"], cells)
    measure.finish(room, options, {"results": results}, [lines])


if __name__ == "__main__":
    main()
