"""Runs of all faults, evenly, until each has as many as wanted: for hours, beside other work. One process, so that the jobs without
faults are measured once; each run is a line of a file, from which the campaign goes on when it is started again.

    campaign.py --record FILE [--shoal BINARY] [--target 500] [--hours 8] [--only FAULT …] [--waiting 12] [--busy 2]
    campaign.py --record FILE --table       the runs so far
"""
import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import disturbances  # noqa: E402
import fault_suite  # noqa: E402
import harness  # noqa: E402

# These mostly wait, so that many of them go on at once.
WAITING = disturbances.PAUSED + ("link-down",)
# A server of a word2vec job, in its first half second, beside two processes that compute.
EARLY = "server-early"
ALL = disturbances.ALL + (EARLY,)


def read(path):
    """The lines of the record."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def table(lines):
    """As fault_suite.summary, with the seeds of wrong runs."""
    out = ["| fault | runs | hit | job succeeded | wrong | left behind | seeds of these |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for name in ALL:
        mine = [line for line in lines if line["fault"] == name]
        if mine:
            bad = ", ".join(str(line["seed"]) for line in mine if line["wrong"] or line["leftovers"])
            out.append(f"| {name} | {len(mine)} | {sum(bool(line['landed']) for line in mine)} | {sum(line['succeeded'] for line in mine)} | "
                       f"{sum(bool(line['wrong']) for line in mine)} | {sum(bool(line['leftovers']) for line in mine)} | {bad} |")
    return out


class Campaign:
    """What is done and what goes on."""

    def __init__(self, options):
        self.options = options
        self.lock = threading.Lock()
        self.done = collections.Counter(line["fault"] for line in read(options.record))
        self.going = collections.Counter()
        self.seed = int(time.time()) * 100  # never one of an earlier start

    def suite_options(self, name):
        early = name == EARLY
        return argparse.Namespace(shoal=self.options.shoal, only="server" if early else name, within=0.5 if early else None,
                                  kind="word2vec" if early else None, engine="local", pause=40, seconds=self.options.seconds, parallel=self.options.busy)

    def choose(self):
        """The fault of which there are the fewest runs, among those of which another may begin; None."""
        with self.lock:
            waiting = sum(self.going[name] for name in WAITING)
            busy = sum(self.going.values()) - waiting
            able = [name for name in self.options.only if self.done[name] + self.going[name] < self.options.target and
                    (waiting < self.options.waiting if name in WAITING else busy < self.options.busy)]
            if not able:
                return None
            name = min(able, key=lambda one: self.done[one] + self.going[one])
            self.going[name] += 1
            self.seed += 1
            return name, self.seed

    def run(self, name, seed, work, baselines):
        computing = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 if name == EARLY else 0)]
        try:
            run = fault_suite.one_run(self.suite_options(name), seed, work, baselines)
            with self.lock, open(self.options.record, "a", encoding="utf-8") as f:
                f.write(json.dumps({"fault": name, "at": round(time.time()), "load": os.getloadavg()[0], **vars(run)}) + "\n")
                self.done[name] += 1
        except Exception:  # pylint: disable=broad-exception-caught  # the others go on
            traceback.print_exc()
        finally:
            for process in computing:
                process.kill()
                process.wait()
            with self.lock:
                self.going[name] -= 1

    def finished(self):
        return all(self.done[name] >= self.options.target for name in self.options.only)

    def go(self):
        end = time.monotonic() + 3600 * self.options.hours
        with tempfile.TemporaryDirectory(prefix="shoal-faults-") as folder, \
                concurrent.futures.ThreadPoolExecutor(self.options.waiting + self.options.busy) as pool:
            work = fault_suite.Work(folder, self.options.seconds)
            baselines = fault_suite.calibrate(self.suite_options("worker"), work)
            while time.monotonic() < end and not self.finished():
                chosen = self.choose()
                if chosen:
                    pool.submit(self.run, *chosen, work, baselines)
                else:
                    time.sleep(0.2)  # poll


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--shoal", default=harness.DEFAULT_BINARY, help="the binary under test")
    parser.add_argument("--record", required=True, help="the file of runs, JSON lines")
    parser.add_argument("--target", type=int, default=500, help="how many runs of each fault")
    parser.add_argument("--hours", type=float, default=8, help="after which no further run begins")
    parser.add_argument("--only", choices=ALL, nargs="+", default=list(ALL), help="these faults alone")
    parser.add_argument("--waiting", type=int, default=12, help="how many runs go on at once of faults that mostly wait")
    parser.add_argument("--busy", type=int, default=2, help="of the others")
    parser.add_argument("--seconds", type=float, default=3, help="how long a job should take")
    parser.add_argument("--table", action="store_true", help="prints the runs so far")
    options = parser.parse_args()
    if not options.table:
        Campaign(options).go()
    print("\n".join(table(read(options.record))))
    return 1 if any(line["wrong"] or line["leftovers"] for line in read(options.record)) else 0


if __name__ == "__main__":
    sys.exit(main())
