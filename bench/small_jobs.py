"""The cost of a job that does nothing: `shoal run` of 4 tasks of `true` from command to exit, beside plain processes.

Durable commits are counted by strace (fsync, fdatasync, sync_file_range, msync with MS_SYNC) in runs of their own. The
followers' row: how long after the last worker's end its follower is told (SIGTERM arrives) and how long after it is gone,
by the followers' and workers' own clocks. Start: until the last of 4 tasks has written down that it runs, beside `mpirun` of the
same where there is one. Cancel: `shoal stop` of 16 tasks that ignore SIGTERM no longer than they must, until the last process is
gone. Logs: processor seconds, a GB of lines, of each of Shoal's processes (sampled from /proc until they end), beside `cat` from
the same pipe into a file, which is what the kernel takes for the two copies.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import measure

_TRUE = """\
name: four-true
framework: generic
roles:
  worker: {replicas: 4, command: ["true"]}
"""

# The worker writes the time of its end, the follower that of its SIGTERM; both with the system's clock in nanoseconds.
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


_SAY_TIME = "import sys, time, os; open(os.path.join(sys.argv[1], str(int.from_bytes(os.urandom(8), 'big'))), 'w').write(str(time.time_ns())); time.sleep(0.2)"
_START = """\
name: start
framework: generic
roles:
  worker: {{replicas: 4, command: ["{python}", "-S", "-c", "{code}", "{folder}"]}}
"""
_SIXTEEN = """\
name: sixteen
framework: generic
roles:
  worker: {replicas: 16, command: ["sh", "-c", "echo up; exec sleep 1000"]}
limits: {stop_grace: 2s}
"""
_LINES = """\
name: lines
framework: generic
roles:
  worker: {{replicas: 1, command: ["sh", "-c", "yes '{line}' | head -c {bytes}"]}}
"""
_LOG_BYTES = 400_000_000


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
    """(milliseconds until the follower got SIGTERM, until the command was over) after the last worker's end."""
    for name, text in (("worker.py", _WORKER), ("follower.py", _FOLLOWER)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    run_job(folder, _FOLLOW.format(folder=folder, python=sys.executable))
    over = time.time_ns()

    def read(name):
        with open(os.path.join(folder, name), encoding="ascii") as f:
            return int(f.read())

    return (read("told") - read("end")) / 1e6, (over - read("end")) / 1e6


def last_started(folder, begin):
    """Milliseconds from `begin` until the last of four programs ran, by the times that they recorded."""
    times = [int(open(os.path.join(folder, name), encoding="ascii").read()) for name in os.listdir(folder) if name.isdigit()]
    if len(times) != 4:
        sys.exit(f"{len(times)} of 4 programs wrote down when they ran")
    return (max(times) - begin) / 1e6


def start_by_shoal(folder):
    text = _START.format(python=sys.executable, code=_SAY_TIME, folder=folder)
    run_job(folder, text)  # the state home is there
    for name in os.listdir(folder):
        if name.isdigit():
            os.remove(os.path.join(folder, name))
    begin = time.time_ns()
    run_job(folder, text)
    return last_started(folder, begin)


def start_by_mpirun(folder):
    command = ["mpirun", "-n", "4", "--oversubscribe", "--allow-run-as-root", sys.executable, "-S", "-c", _SAY_TIME, folder]
    begin = time.time_ns()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return last_started(folder, begin)


def cancel_of_sixteen(folder):
    """Milliseconds from `shoal stop` until the command that ran the job, and all of its processes, are gone."""
    path = os.path.join(folder, "job.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(_SIXTEEN)
    environment = {**os.environ, "SHOAL_HOME": os.path.join(folder, "home")}
    run = subprocess.Popen([measure.SHOAL, "run", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, env=environment)
    up = 0
    while up < 16:
        up += "| up" in run.stdout.readline()
    begin = time.monotonic()
    subprocess.run([measure.SHOAL, "stop", "sixteen"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env=environment, check=True)
    run.communicate()
    return 1e3 * (time.monotonic() - begin)


def busy_seconds(folder, seen):
    """Records the processor seconds of all of Shoal's processes with `folder` in their environment."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if folder.encode() not in f.read():
                    continue
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            if words[0] == measure.SHOAL.encode():
                seen[words[1].decode(), pid] = sum(_thread_seconds(pid))
        except OSError:
            pass  # it has ended


def _thread_seconds(pid):
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as f:
            yield int(f.read().split()[0]) / 1e9


def log_cost(folder):
    """Processor seconds a GB of the launcher, the coordinator and the controller, for one task's lines, and GB/s."""
    path = os.path.join(folder, "job.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(_LINES.format(line="x" * 99, bytes=_LOG_BYTES))
    seen, started = {}, time.monotonic()
    job = subprocess.Popen([measure.SHOAL, "run", "-q", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, env={**os.environ, "SHOAL_HOME": os.path.join(folder, "home")})
    over = threading.Event()

    def watch():
        while not over.wait(0.02):
            busy_seconds(folder, seen)

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = job.wait()
    seconds = time.monotonic() - started
    over.set()
    watcher.join()
    kept = sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(os.path.join(folder, "home", "jobs"))
               for name in names if os.path.basename(place) == "logs" and name.endswith(".log"))  # not the indexes beside them
    if code != 0 or kept != _LOG_BYTES:
        sys.exit(f"shoal run ended with {code}; {kept} of {_LOG_BYTES} bytes of the log were kept")
    cost = [sum(s for (kind, _), s in seen.items() if kind == one) / (_LOG_BYTES / 1e9) for one in ("task", "coordinator", "run")]
    return (*cost, _LOG_BYTES / 1e9 / seconds)


def cat_cost(folder):
    """Processor seconds a GB of `cat` from the same pipe into a file, and GB/s."""
    line = "x" * 99
    with subprocess.Popen(["sh", "-c", f"yes '{line}' | head -c {_LOG_BYTES}"], stdout=subprocess.PIPE) as printer:
        started = time.monotonic()
        with open(os.path.join(folder, "out"), "wb") as out:
            cat = subprocess.Popen(["cat"], stdin=printer.stdout, stdout=out)
        _, _, used = os.wait4(cat.pid, 0)
        seconds = time.monotonic() - started
    return (used.ru_utime + used.ru_stime) / (_LOG_BYTES / 1e9), _LOG_BYTES / 1e9 / seconds


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
            ("used", in_folder(in_used_home(4))), ("follow", in_folder(stop_times)),
            ("start", in_folder(start_by_shoal)), ("cancel", in_folder(cancel_of_sixteen)), ("logs", in_folder(log_cost)), ("cat", in_folder(cat_cost))]
    if shutil.which("mpirun"):
        rows.append(("mpirun", in_folder(start_by_mpirun)))
    results = measure.interleave(rows, options.rounds)
    syncs = in_folder(lambda f: count_syncs(f, 4))()
    used = [s for runs in results["used"] for s in runs]
    told, over = zip(*results["follow"])
    log, cat = ([measure.median(column) for column in zip(*results[row])] for row in ("logs", "cat"))
    cells = [
        ["4 × `true`, sh and wait, ms", 1e3 * measure.median(results["plain shell"]), None],
        ["4 × `true`, `shoal run`, ms", 1e3 * measure.median(used), "120"],
        ["the same, slowest of all, ms", 1e3 * max(used), None],
        ["the same, first job of a new state home, ms", 1e3 * measure.median(results["first"]), None],
        ["durable commits of it", float(measure.median(syncs[1:])), "3"],
        ["durable commits, first job of a new state home", float(syncs[0]), None],
        ["follower told after the last worker's end, ms", measure.median(told), "100"],
        ["follower gone and command over, ms", measure.median(over), "200"],
        ["4 tasks running, ms", measure.median(results["start"]), "80"],
        ["16 tasks cancelled, last process gone, ms", measure.median(results["cancel"]), "1,000"],
        ["lines of one task, processor seconds a GB: launcher", log[0], "1"],
        ["… coordinator", log[1], None],
        ["… controller", log[2], None],
        ["… `cat` from the same pipe into a file", cat[0], None],
        ["lines of one task, MB/s", 1e3 * log[3], None],
        ["… `cat`, MB/s", 1e3 * cat[1], None],
    ]
    if "mpirun" in results:
        cells.insert(-7, ["the same by `mpirun`, ms", measure.median(results["mpirun"]), None])
    lines = measure.table(["what", "median", "reach"], cells)
    measure.finish("small-jobs", options, {"results": results, "syncs": syncs}, [lines])


if __name__ == "__main__":
    main()
