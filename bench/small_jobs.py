"""What a job costs that does nothing: `shoal run` of 4 tasks of `true` from command to exit, beside plain processes.

Durable commits are counted by strace (fsync, fdatasync, sync_file_range, msync with MS_SYNC) in runs of their own. The
followers' row: how long after the last worker's end its follower is told (SIGTERM arrives) and how long after it is gone,
by the followers' and workers' own clocks.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import measure

_TRUE = """\
name: four-true
framework: generic
roles:
  worker: {replicas: 4, command: ["true"]}
"""

# The worker writes when it ends, the follower when it is told; both with the system's clock in nanoseconds.
_WORKER = """\
import sys, time
time.sleep(0.3)
with open(sys.argv[1], "w") as f:
    f.write(str(time.time_ns()))
"""
_FOLLOWER = """\
import signal, sys, time
stop = {signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, stop)
signal.sigwait(stop)
with open(sys.argv[1], "w") as f:
    f.write(str(time.time_ns()))
"""
_FOLLOW = """\
name: follower
framework: generic
roles:
  worker: {{replicas: 1, command: ["{python}", "{folder}/worker.py", "{folder}/end"]}}
  server: {{replicas: 1, follows: worker, command: ["{python}", "{folder}/follower.py", "{folder}/told"]}}
"""


def run_job(folder, text):
    """Runs a job file in a state home of its own below `folder`; wall seconds."""
    path = os.path.join(folder, "job.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    begin = time.monotonic()
    done = subprocess.run([measure.SHOAL, "run", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env={**os.environ, "SHOAL_HOME": os.path.join(folder, "home")},
                          check=False)
    seconds = time.monotonic() - begin
    if done.returncode != 0:
        sys.exit(f"shoal run failed ({done.returncode}):\n{done.stdout[-2000:]}")
    return seconds


def count_syncs(folder, repeat):
    """Calls of the syncing system calls by all processes of one `shoal run`, for each of `repeat` runs in one home."""
    path = os.path.join(folder, "job.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(_TRUE)
    counts = []
    for turn in range(repeat):
        trace = os.path.join(folder, f"trace{turn}")
        subprocess.run(["strace", "-f", "-qq", "-o", trace, "-e", "trace=fsync,fdatasync,sync_file_range,msync,syncfs,sync",
                        measure.SHOAL, "run", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env={**os.environ, "SHOAL_HOME": os.path.join(folder, "home")}, check=True)
        with open(trace, encoding="utf-8", errors="replace") as f:
            counts.append(len(re.findall(r"^\d+\s+(?:fsync|fdatasync|sync_file_range|msync|syncfs|sync)\(", f.read(), re.M)))
    return counts


def stop_times(folder):
    """(milliseconds until the follower was told, until the command was over) after the last worker's end."""
    for name, text in (("worker.py", _WORKER), ("follower.py", _FOLLOWER)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    run_job(folder, _FOLLOW.format(folder=folder, python=sys.executable))
    over = time.time_ns()

    def read(name):
        with open(os.path.join(folder, name), encoding="ascii") as f:
            return int(f.read())

    return (read("told") - read("end")) / 1e6, (over - read("end")) / 1e6


def in_folder(function):
    """The function called with a fresh temporary directory."""
    def call():
        folder = tempfile.mkdtemp(prefix="shoal-bench-")
        try:
            return function(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return call


def plain():
    """Seconds of a shell that runs four `true` side by side."""
    begin = time.monotonic()
    subprocess.run(["sh", "-c", "env true & env true & env true & env true & wait"], check=True)
    return time.monotonic() - begin


def in_used_home(repeat):
    """Seconds of one run in a home where the store exists already: the first of `repeat` is left out."""
    def call(folder):
        return [run_job(folder, _TRUE) for _ in range(repeat)][1:]
    return call


def main():
    options = measure.arguments(__doc__, "small-jobs").parse_args()
    rows = [("plain shell", plain), ("first", in_folder(lambda f: run_job(f, _TRUE))),
            ("used", in_folder(in_used_home(4))), ("follow", in_folder(stop_times))]
    results = measure.interleave(rows, options.rounds)
    syncs = in_folder(lambda f: count_syncs(f, 4))()
    used = [s for runs in results["used"] for s in runs]
    told, over = zip(*results["follow"])
    cells = [
        ["4 × `true`, sh and wait, ms", 1e3 * measure.median(results["plain shell"]), None],
        ["4 × `true`, `shoal run`, ms", 1e3 * measure.median(used), "120"],
        ["the same, slowest of all, ms", 1e3 * max(used), None],
        ["the same, first job of a new state home, ms", 1e3 * measure.median(results["first"]), None],
        ["durable commits of it", float(measure.median(syncs[1:])), "3"],
        ["durable commits, first job of a new state home", float(syncs[0]), None],
        ["follower told after the last worker's end, ms", measure.median(told), "100"],
        ["follower gone and command over, ms", measure.median(over), "200"],
    ]
    lines = measure.table(["what", "median", "reach"], cells)
    measure.finish("small-jobs", options, {"results": results, "syncs": syncs}, [lines])


if __name__ == "__main__":
    main()
