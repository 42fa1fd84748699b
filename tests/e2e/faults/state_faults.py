"""Faults of the state home and of the command, at seeded random moments: the command is frozen (SIGSTOP) for up to 3 s, or
the disk of the state home is full for 0.4 s (a tmpfs that is filled; needs root). The job must succeed as without a fault,
the store must say so, and nothing may be left. Run by hand: python3 state_faults.py --runs 100 --seed 1
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import fault_suite  # noqa: E402
import harness  # noqa: E402
import scenarios  # noqa: E402

KINDS = ("frozen-command", "full-disk")
FULL_SECONDS = 0.4


def freeze(process, rng):
    """Stops the command for a while."""
    os.kill(process.pid, signal.SIGSTOP)
    threading.Event().wait(rng.uniform(0.1, 3))
    os.kill(process.pid, signal.SIGCONT)


def fill(home):
    """Leaves the state home's disk no room for a while."""
    filler = os.path.join(home.home, "filler")
    with open(filler, "wb", buffering=0) as f:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    f.write(b"x" * size)
            except OSError:
                pass
    threading.Event().wait(FULL_SECONDS)
    os.remove(filler)


def one_run(options, seed, kind, epochs, baseline):
    """One word2vec job, one fault; sentences about what was wrong."""
    rng = random.Random(seed)
    with harness.Home(options.shoal) as home:
        if kind == "full-disk":
            os.mkdir(home.home)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=0700", "none", home.home], check=True)
        try:
            scenario = scenarios.Scenario("word2vec", home, "worker", epochs)
            process = scenario.start()
            moment = rng.uniform(0.2, 0.95 * baseline["seconds"])
            harness.poll_until(lambda: process.poll() is not None, moment)
            if process.poll() is None:
                freeze(process, rng) if kind == "frozen-command" else fill(home)
            limit = (2 * baseline["seconds"] + 20) * harness.PATIENCE
            ended = harness.poll_until(lambda: process.poll() is not None, limit)
            wrong = [] if ended else [f"not over {limit:.0f} s after the fault"]
            if not ended:
                process.kill()
            code = process.wait()
            run = fault_suite.Run(seed, "word2vec", kind)
            wrong += scenario.judge(baseline, code)[0]
            if home.verdict().get("state") != "succeeded":
                wrong.append(f"{home.verdict().get('state')}: {home.verdict().get('reason')}")
            fault_suite.check_store(home, run)
            wrong += run.wrong + home.leftovers(2, [scenario.output])
            if wrong:
                print(f"\nFAILED seed {seed} ({kind}, after {moment:.2f} s): " + "; ".join(wrong))
                print("  " + "\n  ".join(harness.said(process)[-1200:].splitlines()), flush=True)
            return wrong
        finally:
            if kind == "full-disk":
                subprocess.run(["umount", "-l", home.home], check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--shoal", default=harness.DEFAULT_BINARY, help="the binary under test")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the others follow")
    parser.add_argument("--only", choices=KINDS, help="this kind alone")
    options = parser.parse_args()
    kinds = [options.only] if options.only else [k for k in KINDS if k != "full-disk" or os.geteuid() == 0]
    epochs, baselines = fault_suite.calibrate(options.shoal)
    begin, failed = time.monotonic(), 0
    for i in range(options.runs):
        seed = options.seed + i
        wrong = one_run(options, seed, kinds[seed % len(kinds)], epochs, baselines["word2vec"])
        failed += bool(wrong)
        print("F" if wrong else ".", end="", flush=True)
    print(f"\nstate faults: {options.runs - failed} passed, {failed} failed in {time.monotonic() - begin:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
