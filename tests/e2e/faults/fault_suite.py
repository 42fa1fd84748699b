"""Faults at seeded random moments: kill -9 of a worker's or server's program, a launcher, the coordinator, the controller;
and, if asked for, what others than the job do to it, and what happens to its disks and links (disturbances.py).

Every run starts a real job of its own (word2vec on 2 servers and 3 workers, or shell programs that leave orphans), does one
thing to it at a moment drawn from the run's seed, and checks that the job ended right and in time and that nothing is left:
no process, no cgroup, no port, no scratch or half-written file. script/faults runs it.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import cluster_faults  # noqa: E402
import disturbances  # noqa: E402
import engines  # noqa: E402
import harness  # noqa: E402
import planted  # noqa: E402
import scenarios  # noqa: E402

# What is drawn without --only.
USUAL = disturbances.KILLED
ON_CLUSTERS = {
    "docker": ("worker", "server", "launcher", "coordinator", "disk-full", "io-error", "frozen-command", "killed-command", "stop-job"),
    "slurm": ("worker", "server", "launcher", "coordinator", "disk-full", "io-error", "frozen-command", "killed-command", "stop-job",
              *cluster_faults.OF_SLURM),
    "kubernetes": ("worker", "server", "launcher", "coordinator", "disk-full", "io-error", "frozen-command", "killed-command", "stop-job",
                   *cluster_faults.OF_KUBERNETES),
}
ALL = disturbances.ALL + tuple(cluster_faults.CLASSES)
# Of four seeds with the same fault: on this machine, on a cluster.
KINDS_DRAWN = (("word2vec", "word2vec", "word2vec", "generic"), ("word2vec", "word2vec", "counter", "generic"))


def kinds_of(options):
    """Of which a baseline is measured: word2vec always, by which the work is measured out."""
    return ("word2vec", *(kind for kind in scenarios.KINDS[1:] if kind in (
        [options.kind] if options.kind else KINDS_DRAWN[options.engine != "local"])))


def usual(engine):
    """What is drawn on an engine without --only."""
    return [one for one in ON_CLUSTERS.get(engine, USUAL) if one not in cluster_faults.OF_DISKS or cluster_faults.disks_are_small()]


def make_fault(victim, home, rng, pause):
    return {**disturbances.CLASSES, **cluster_faults.CLASSES}.get(victim, disturbances.OnProcess)(victim, home, rng, pause)


class Work:
    """What the word2vec jobs train: a text, and as many epochs as make a job last about `seconds`."""

    def __init__(self, folder, seconds):
        self.seconds, self.epochs = seconds, 10
        self.corpus = os.path.join(folder, "corpus.txt")
        self.words = planted.write_corpus(self.corpus, 400_000 if seconds >= 3 else 200_000)
        os.chmod(folder, 0o755)


class Pace:
    """How long jobs of a kind take now, without faults: on a machine with other work not always what the baseline says.
    Shorter after a fault that came too late, longer after one that did not."""

    def __init__(self, seconds):
        self.seconds, self.least, self.most = seconds, seconds / 8, seconds * 4
        self.lock = threading.Lock()

    def learn(self, landed):
        with self.lock:
            self.seconds = min(self.most, max(self.least, self.seconds * (1.02 if landed else 0.85)))


class Run:
    """What one run showed."""

    def __init__(self, seed, kind, victim):
        self.seed, self.kind, self.victim = seed, kind, victim
        self.landed = ""         # what was done; empty if the job was over before
        self.succeeded = False
        self.reason = ""         # of a job that did not succeed
        self.seconds = 0.0       # from the fault to the end of everything
        self.moment = 0.0        # of the fault, seconds after the start
        self.loss = None         # of the model
        self.wrong, self.leftovers = [], []

    @property
    def ok(self):
        return not self.wrong and not self.leftovers


def measure_baseline(options, kind, work):
    """Runs the job without faults: its seconds, purity and loss."""
    engine = engines.ENGINES[options.engine]()
    with engine.home(options.shoal) as home:
        scenario = scenarios.Scenario(kind, home, "worker", work, engine)
        begin = time.monotonic()
        process = scenario.start()
        code = process.wait(timeout=120 * harness.PATIENCE)
        seconds = time.monotonic() - begin
        if code != 0:
            raise SystemExit(f"the {kind} job fails without any fault (exit {code}):\n{harness.said(process)[-3000:]}")
        purity, loss = scenario.quality() if kind == "word2vec" else (None, None)
        left = home.leftovers(outputs=[scenario.output] if scenario.output else [])
        if left:
            raise SystemExit(f"the {kind} job leaves things behind without any fault: {left}")
        return {"seconds": seconds, "purity": purity, "loss": loss}


def measure_out(options, work):
    """As many epochs as make a job last about as long as wanted."""
    short = measure_baseline(options, "word2vec", work)
    work.epochs = 20
    longer = measure_baseline(options, "word2vec", work)
    per_epoch = max(0.01, (longer["seconds"] - short["seconds"]) / 10)
    work.epochs = min(300, max(10, round(10 + (options.seconds - short["seconds"]) / per_epoch)))


def calibrate(options, work):
    """Sets the epochs; the baselines are those of as many jobs at once as there will be, as far as they would compete."""
    if options.engine == "local":
        measure_out(options, work)
    else:
        work.epochs = 6  # a start takes long enough
    crowd = min(options.parallel, 2 * (os.cpu_count() or 1))
    with concurrent.futures.ThreadPoolExecutor(crowd) as pool:
        measured = list(pool.map(lambda _: measure_baseline(options, "word2vec", work), range(max(3 if options.engine == "local" else 1, crowd))))
    baselines = {"word2vec": {name: statistics.median(one[name] for one in measured) for name in measured[0]},
                 **{kind: measure_baseline(options, kind, work) for kind in kinds_of(options) if kind != "word2vec"}}
    for baseline in baselines.values():
        baseline["pace"] = Pace(baseline["seconds"])
    return baselines


def do_at(fault, process, moment, rng):
    """Does it to one target `moment` seconds after now, or as soon as there is one; False if there was none any more."""
    harness.poll_until(lambda: process.poll() is not None, moment)
    targets = harness.poll_until(lambda: fault.targets(process) or process.poll() is not None, 20 * harness.PATIENCE)
    if targets is True or not targets:
        return False
    try:
        fault.strike(rng.choice(targets))
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


def one_run(options, seed, work, baselines):
    """One job, one fault, all checks."""
    drawn = usual(options.engine)
    victim = options.only or drawn[seed % len(drawn)]
    kind = options.kind or KINDS_DRAWN[options.engine != "local"][(seed // len(drawn)) % 4]
    run, baseline = Run(seed, kind, victim), baselines[kind]
    rng = random.Random(seed)
    engine = engines.ENGINES[options.engine]()
    with engine.home(options.shoal) as home:
        home.engine = engine
        fault = make_fault(victim, home, rng, options.pause)
        # A quarter of the faults fall into the gathering, which locally lasts but a fraction of a second.
        run.moment = rng.uniform(0, engine.arrival) if rng.random() < 0.25 else rng.uniform(0, 1.05 * baseline["pace"].seconds)
        if options.within:
            run.moment = rng.uniform(0, options.within)
        try:
            fault.prepare()
            observe(options, run, fault, scenarios.Scenario(kind, home, victim, work, engine), baseline)
        finally:
            fault.close()
    if not options.within:
        baseline["pace"].learn(run.landed)
    return run


def observe(options, run, fault, scenario, baseline):
    """The job from its start to its judgement."""
    home = fault.home
    process = fault.start(scenario)
    run.landed = fault.landed if do_at(fault, process, run.moment, fault.rng) else ""
    struck = time.monotonic()
    ports = home.ports()
    crowd = max(1, options.parallel / (2 * (os.cpu_count() or 1)))
    limit = (scenario.allowance(baseline, run.moment) * crowd + fault.extra_seconds) * harness.PATIENCE
    # The job is over when the command has ended and, where that was the victim, when the job's own processes have.
    harness.poll_until(lambda: process.poll() is not None, limit, pause=0.02)
    fault.recover()
    harness.poll_until(lambda: not home.processes(), max(0, struck + limit - time.monotonic()), pause=0.02)
    run.seconds = time.monotonic() - struck
    if process.poll() is None:
        run.wrong.append(f"not over {limit:.0f} s after the fault")
        process.kill()
    code = process.wait()
    run.leftovers = home.leftovers(0.5, [scenario.output] if scenario.output else [])
    wrong, run.succeeded = scenario.judge(baseline, code, fault, harness.said(process))
    run.loss = scenario.loss
    # A controller that was killed before it had written the job down has no job, and so no verdict.
    if not (run.victim.startswith("controller") and run.landed and not home.job_dirs()):
        run.wrong += wrong + fault.check()
        if home.job_dirs():
            check_store(home, run)
    run.reason = "" if run.succeeded else str(home.verdict().get("reason", harness.said(process)[-300:]))
    run.leftovers += [f"port {p} is still taken" for p in sorted(ports) if not harness.bindable(p) and p in home.ports()]
    if not run.ok:
        home.keep = True
        report(run, home, process)


_report_lock = threading.Lock()


def report(run, home, process):
    """Says at once what was wrong with a run and how to repeat it."""
    with _report_lock:
        print(f"\nFAILED seed {run.seed} ({run.kind}, {run.victim}, after {run.moment:.2f} s: {run.landed or 'missed'})")
        for sentence in run.wrong + run.leftovers:
            print(f"  {sentence}")
        print(f"  verdict: {json.dumps(home.verdict())[:600]}")
        print("  the command said: " + "\n    ".join(harness.said(process)[-1200:].splitlines()))
        print(f"  kept: {home.root}")
        print(f"  repeat: script/faults --runs 1 --seed {run.seed} --only {run.victim} --kind {run.kind}", flush=True)


def summary(runs):
    """The table, as Markdown lines."""
    lines = ["| fault | runs | hit | job succeeded | ended otherwise, truly told | wrong | left behind | median s | max s |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for victim in ALL:
        mine = [r for r in runs if r.victim == victim]
        if mine:
            seconds = [r.seconds for r in mine]
            lines.append(f"| {victim} | {len(mine)} | {sum(bool(r.landed) for r in mine)} | {sum(r.succeeded for r in mine)} | "
                         f"{sum(r.ok and not r.succeeded for r in mine)} | {sum(bool(r.wrong) for r in mine)} | "
                         f"{sum(bool(r.leftovers) for r in mine)} | {statistics.median(seconds):.1f} | {max(seconds):.1f} |")
    return lines


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--shoal", default=harness.DEFAULT_BINARY, help="the binary under test")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the others follow")
    parser.add_argument("--only", choices=ALL, help="this fault alone")
    parser.add_argument("--within", type=float, help="in the first so many seconds of the job only")
    parser.add_argument("--pause", type=float, default=40, help="for how many seconds stop-… stops a process")
    parser.add_argument("--kind", choices=scenarios.KINDS, help="only this kind of job")
    parser.add_argument("--engine", choices=tuple(engines.ENGINES), default="local", help="where the jobs run; others than local inside script/test-cluster")
    parser.add_argument("--seconds", type=float, default=3, help="how long a job should take")
    parser.add_argument("--parallel", type=int, default=1, help="how many runs go on at once")
    parser.add_argument("--verbose", action="store_true", help="a line for every run")
    parser.add_argument("--record", help="write the table and every run to this JSON file, now and then and at the end")
    return parser.parse_args()


def record(options, baselines, runs):
    if options.record:
        with open(options.record, "w", encoding="utf-8") as f:
            told = {kind: {k: v for k, v in one.items() if k != "pace"} for kind, one in baselines.items()}
            json.dump({"table": summary(runs), "baselines": told, "runs": [vars(r) for r in runs]}, f, indent=1)


def show(options, run, count):
    if options.verbose:
        print(f"seed {run.seed} {run.kind} {run.victim}: at {run.moment:.2f} s {run.landed or 'missed'}, "
              f"{'succeeded' if run.succeeded else 'ended'} {run.seconds:.1f} s later", flush=True)
    else:
        print("." if run.ok else "F", end="" if count % 50 else "\n", flush=True)


def all_runs(options, work, baselines):
    """The runs as they end. Interrupted, it begins no others, and what goes on ends and removes what it has made."""
    with concurrent.futures.ThreadPoolExecutor(options.parallel) as pool:
        seeds = range(options.seed, options.seed + options.runs)
        going = [pool.submit(one_run, options, seed, work, baselines) for seed in seeds]
        try:
            for done in concurrent.futures.as_completed(going):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def main():
    options = parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    runs, begin = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="shoal-faults-") as folder:
        work = Work(folder, options.seconds)
        baselines = calibrate(options, work)
        print(f"without faults: word2vec {baselines['word2vec']['seconds']:.1f} s ({work.epochs} epochs, purity "
              f"{baselines['word2vec']['purity']:.3f}), " + ", ".join(f"{kind} {one['seconds']:.1f} s" for kind, one in baselines.items() if kind != "word2vec"), flush=True)
        with contextlib.suppress(KeyboardInterrupt):  # told to end: what there is counts
            for done in all_runs(options, work, baselines):
                runs.append(done)
                show(options, done, len(runs))
                if len(runs) % 20 == 0:
                    record(options, baselines, runs)
    runs.sort(key=lambda r: r.seed)
    print("\n" + "\n".join(summary(runs)))
    bad = [r for r in runs if not r.ok]
    print(f"{len(runs)} runs in {time.monotonic() - begin:.0f} s, seeds {options.seed}–{options.seed + options.runs - 1}")
    record(options, baselines, runs)
    print(f"faults: {len(runs) - len(bad)} passed, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
