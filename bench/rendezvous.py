"""From the first launcher that dials to the last program that is told to start: a crowd of simulated launchers in one process
against one coordinator in another, on loopback, and the coordinator's memory.

The launchers dial 256 at a time, prove the token, lease a port and take their orders as real ones do; they only do not read the
description, which real ones do on machines of their own. "end" is from all of them ending well at once to the last one's release.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import measure

_CROWD = os.path.join(os.environ.get("SHOAL_BENCH_DIR", os.path.join(measure.ROOT, "build", "release")), "src", "rendezvous",
                      "rendezvous_launcher_load")


def crowd(program, tasks):
    """One rendezvous of `tasks` launchers; what the crowd's process measured."""
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
    parser.add_argument("--before", help="the crowd's program of another commit, measured in the same rounds")
    options = parser.parse_args()
    programs = {"now": _CROWD, **({"before": options.before} if options.before else {})}
    rows = [(f"{name} {tasks}", lambda p=program, n=tasks: crowd(p, n)) for tasks in options.tasks
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
