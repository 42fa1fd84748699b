"""Launcher load test: the time from the first launcher's connection until the last program is told to start, with simulated launchers
in one process and one coordinator in another, on loopback, and the coordinator's memory.

The launchers connect 256 at a time, authenticate, lease a port and follow the coordinator as real ones do. They do not read the cluster
description, which real launchers do on their own machines. "end": from the successful end of all tasks to the last launcher's release.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import measure

_LOAD_TEST = os.path.join(os.environ.get("SHOAL_BENCH_DIR", os.path.join(measure.ROOT, "build", "release")), "src", "rendezvous",
                      "rendezvous_launcher_load")


def load_test(program, tasks):
    """One rendezvous of `tasks` launchers; returns the measurements of the launchers' process."""
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        coordinator = subprocess.Popen([program, "coordinator", str(tasks), folder], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 20
            while not os.path.exists(os.path.join(folder, "coordinator.json")):
                if time.monotonic() > deadline or coordinator.poll() is not None:
                    sys.exit("the coordinator did not come up")
                time.sleep(0.005)
            done = subprocess.run([program, "launchers", str(tasks), folder], stdout=subprocess.PIPE, text=True, timeout=300,
                                  check=True)
            return json.loads(done.stdout)
        finally:
            coordinator.kill()
            coordinator.wait()


def main():
    parser = measure.arguments(__doc__, "rendezvous")
    parser.add_argument("--tasks", type=int, nargs="*", default=[1000, 10000])
    parser.add_argument("--before", help="the load test's program of another commit, measured in the same rounds")
    options = parser.parse_args()
    programs = {"now": _LOAD_TEST, **({"before": options.before} if options.before else {})}
    rows = [(f"{name} {tasks}", lambda p=program, n=tasks: load_test(p, n)) for tasks in options.tasks
            for name, program in programs.items()]
    results = measure.interleave(rows, options.rounds)
    reach = {1000: "0.3", 10000: "3"}
    cells = []
    for tasks in options.tasks:
        for name in programs:
            runs = results[f"{name} {tasks}"]
            cells.append([f"{tasks:,} launchers" + ("" if name == "now" else f" ({name})"),
                          measure.median([r["start_seconds"] for r in runs]), reach.get(tasks),
                          measure.median([r["end_seconds"] for r in runs]),
                          measure.median([(r["rss_bytes"] - r["rss_before"]) / tasks / 1024 for r in runs]),
                          measure.median([r["described_bytes"] / tasks / 1024 for r in runs])])
    lines = measure.table(["what", "all started, s", "reach", "all ended, s", "coordinator KiB a task", "description KiB"], cells)
    measure.finish("rendezvous", options, {"results": results}, [lines])


if __name__ == "__main__":
    main()
