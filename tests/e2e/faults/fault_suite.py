"""kill -9 at seeded random moments: a worker's or server's program, a launcher, the coordinator, the controller; and, if
asked for, SIGTERM by others than the job and SIGSTOP for longer than anybody is waited for.

Every run starts a real job of its own (word2vec on 2 servers and 3 workers, or shell programs that leave orphans), kills
one process of the chosen role at a moment drawn from the run's seed, and checks that the job ended right and in time and
that nothing is left: no process, no cgroup, no port, no scratch or half-written file. script/faults runs it.
"""
import argparse
import json
import os
import random
import statistics
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import harness  # noqa: E402
import scenarios  # noqa: E402

TARGET_SECONDS = 3.0  # how long a word2vec job should take, so that kills fall into all of its phases


class Run:
    """What one run showed."""

    def __init__(self, seed, kind, victim):
        self.seed, self.kind, self.victim = seed, kind, victim
        self.landed = self.succeeded = False
        self.seconds = 0.0       # from the kill to the end of everything
        self.moment = 0.0        # of the kill, seconds after the start
        self.wrong, self.leftovers = [], []

    @property
    def ok(self):
        return not self.wrong and not self.leftovers


def measure_baseline(binary, kind, epochs):
    """Runs the job without faults: its seconds, purity and loss."""
    with harness.Home(binary) as home:
        scenario = scenarios.Scenario(kind, home, "worker", epochs)
        begin = time.monotonic()
        process = scenario.start()
        code = process.wait(timeout=120 * harness.PATIENCE)
        seconds = time.monotonic() - begin
        if code != 0:
            with open(process.log, encoding="utf-8", errors="replace") as f:
                raise SystemExit(f"the {kind} job fails without any fault (exit {code}):\n{f.read()[-3000:]}")
        purity, loss = scenario.quality() if kind == "word2vec" else (None, None)
        left = home.leftovers(outputs=[scenario.output] if scenario.output else [])
        if left:
            raise SystemExit(f"the {kind} job leaves things behind without any fault: {left}")
        return {"seconds": seconds, "purity": purity, "loss": loss}


def calibrate(binary):
    """(epochs, baselines): as many epochs as make the word2vec job last about TARGET_SECONDS."""
    epochs = 10
    short = measure_baseline(binary, "word2vec", epochs)
    longer = measure_baseline(binary, "word2vec", 2 * epochs)
    per_epoch = max(0.01, (longer["seconds"] - short["seconds"]) / epochs)
    epochs = min(300, max(epochs, round(epochs + (TARGET_SECONDS - short["seconds"]) / per_epoch)))
    return epochs, {"word2vec": measure_baseline(binary, "word2vec", epochs),
                    "generic": measure_baseline(binary, "generic", epochs)}


def kill_at(scenario, process, moment, rng, pause):
    """Kills (or terminates, or stops for `pause` seconds) one victim `moment` seconds after now, or as soon as there is one; (True if one was hit, its name)."""
    end = time.monotonic() + moment
    harness.poll_until(lambda: process.poll() is not None, moment)
    harness.poll_until(lambda: time.monotonic() >= end or process.poll() is not None, moment + 1)
    victims = harness.poll_until(lambda: scenario.victims() or process.poll() is not None, 20)
    if victims is True or not victims:
        return False
    victim = rng.choice(sorted(victims, key=lambda p: p.pid))
    try:
        scenario.hit(victim, pause)
    except ProcessLookupError:
        return False
    return True


def check_store(home, run):
    """The store, read by a new process, says what the verdict says and calls no job running."""
    code, out, err = home.run("jobs", "--json", seconds=20)
    if code != 0:
        run.wrong.append(f"`shoal jobs` ends with {code}: {err.strip()[-200:]}")
        return
    state = home.verdict().get("state")
    ids = {os.path.basename(d) for d in home.job_dirs()}
    states = [job.get("state") for job in _objects(out) if job.get("id") in ids or job.get("job_id") in ids]
    if not states:
        run.wrong.append(f"`shoal jobs --json` does not list the job: {out[:200]}")
    elif state is not None and states[-1] != state:
        run.wrong.append(f"the store says {states[-1]}, the verdict {state}")


def _objects(text):
    """All JSON objects in a text of one JSON value, or of one a line; arrays are opened."""
    try:
        values = [json.loads(text)]
    except ValueError:
        values = []
        for line in text.splitlines():
            try:
                values.append(json.loads(line))
            except ValueError:
                pass
    found = []
    for value in values:
        if isinstance(value, dict):
            found += [value] + [v for inner in value.values() if isinstance(inner, list) for v in inner
                                if isinstance(v, dict)]
        elif isinstance(value, list):
            found += [v for v in value if isinstance(v, dict)]
    return found


def one_run(options, seed, kind, victim, epochs, baseline):
    """One job, one kill, all checks."""
    run = Run(seed, kind, victim)
    rng = random.Random(seed)
    with harness.Home(options.shoal, keep=False) as home:
        scenario = scenarios.Scenario(kind, home, victim, epochs)
        ports = set()
        process = scenario.start()
        # A quarter of the kills fall into the gathering, which lasts but a fraction of a second.
        run.moment = rng.uniform(0, 0.3) if rng.random() < 0.25 else rng.uniform(0, 1.05 * baseline["seconds"])
        if options.within:
            run.moment = rng.uniform(0, options.within)
        run.landed = kill_at(scenario, process, run.moment, rng, options.pause)
        killed = time.monotonic()
        ports |= home.ports()
        limit = scenario.allowance(baseline, run.moment) * harness.PATIENCE
        # The job is over when the command has ended and, where that was the victim, when the job's own processes have.
        harness.poll_until(lambda: process.poll() is not None and not home.processes(), limit)
        run.seconds = time.monotonic() - killed
        if process.poll() is None:
            run.wrong.append(f"not over {limit:.0f} s after the kill")
            process.kill()
        code = process.wait()
        run.leftovers = home.leftovers(0.5, [scenario.output] if scenario.output else [])
        wrong, run.succeeded = scenario.judge(baseline, code)
        # A controller that was killed before it had written the job down has no job, and so no verdict.
        if not (victim.startswith("controller") and run.landed and not home.job_dirs()):
            run.wrong += wrong
            check_store(home, run)
        run.leftovers += [f"port {p} is still taken" for p in sorted(ports) if not harness.bindable(p) and
                          p in home.ports()]
        if not run.ok:
            home.keep = True
            report(run, home, process, options)
    return run


def report(run, home, process, options):
    """Says at once what was wrong with a run and how to repeat it."""
    print(f"\nFAILED seed {run.seed} ({run.kind}, {run.victim}, killed after {run.moment:.2f} s, landed: {run.landed})")
    for sentence in run.wrong + run.leftovers:
        print(f"  {sentence}")
    print(f"  verdict: {json.dumps(home.verdict())[:600]}")
    with open(process.log, encoding="utf-8", errors="replace") as f:
        print("  the command said: " + "\n    ".join(f.read()[-1200:].splitlines()))
    print(f"  kept: {home.root}")
    print(f"  repeat: script/faults --runs 1 --seed {run.seed} --only {run.victim} --kind {run.kind}", flush=True)


def summary(runs):
    """The table, as Markdown lines."""
    lines = ["| killed | runs | hit | job succeeded | failed, truly told | wrong | left behind | median s | max s |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for victim in scenarios.ROLES + scenarios.OTHERS:
        mine = [r for r in runs if r.victim == victim]
        if mine:
            seconds = [r.seconds for r in mine]
            lines.append(f"| {victim} | {len(mine)} | {sum(r.landed for r in mine)} | {sum(r.succeeded for r in mine)} | "
                         f"{sum(r.ok and not r.succeeded for r in mine)} | {sum(bool(r.wrong) for r in mine)} | "
                         f"{sum(bool(r.leftovers) for r in mine)} | {statistics.median(seconds):.1f} | {max(seconds):.1f} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--shoal", default=harness.DEFAULT_BINARY, help="the binary under test")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the others follow")
    parser.add_argument("--only", choices=scenarios.ROLES + scenarios.OTHERS, help="kill only this role, or do only this")
    parser.add_argument("--within", type=float, help="in the first so many seconds of the job only")
    parser.add_argument("--pause", type=float, default=40, help="for how many seconds stop-… stops a process")
    parser.add_argument("--kind", choices=("word2vec", "generic"), help="only this kind of job")
    parser.add_argument("--verbose", action="store_true", help="a line for every run")
    parser.add_argument("--record", help="write the table and every run to this JSON file")
    options = parser.parse_args()

    epochs, baselines = calibrate(options.shoal)
    print(f"without faults: word2vec {baselines['word2vec']['seconds']:.1f} s ({epochs} epochs, purity "
          f"{baselines['word2vec']['purity']:.3f}), generic {baselines['generic']['seconds']:.1f} s", flush=True)
    runs, begin = [], time.monotonic()
    for i in range(options.runs):
        seed = options.seed + i
        victim = options.only or scenarios.ROLES[seed % len(scenarios.ROLES)]
        kind = options.kind or ("generic" if (seed // len(scenarios.ROLES)) % 4 == 3 else "word2vec")
        runs.append(one_run(options, seed, kind, victim, epochs, baselines[kind]))
        if options.verbose:
            r = runs[-1]
            print(f"seed {seed} {kind} {victim}: at {r.moment:.2f} s {'hit' if r.landed else 'missed'}, "
                  f"{'succeeded' if r.succeeded else 'ended'} {r.seconds:.1f} s later", flush=True)
        else:
            print("." if runs[-1].ok else "F", end="" if (i + 1) % 50 else "\n", flush=True)
    lines = summary(runs)
    print("\n" + "\n".join(lines))
    bad = [r for r in runs if not r.ok]
    print(f"{len(runs)} runs in {time.monotonic() - begin:.0f} s, seeds {options.seed}–{options.seed + options.runs - 1}")
    if options.record:
        with open(options.record, "w", encoding="utf-8") as f:
            json.dump({"table": lines, "baselines": baselines, "runs": [vars(r) for r in runs]}, f, indent=1)
    print(f"faults: {len(runs) - len(bad)} passed, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
