"""Real programs of other people's frameworks under faults: framework x fault -> verdict, seconds, processes left.

    matrix.py [--only FRAMEWORK[/FAULT]]... [--write docs/frameworks.md] [--record FILE]

Every run is a job of examples/ as it stands, started by `shoal run` in a state home of its own. When all its programs are
at work the fault is done; the seconds count from there (without a fault: from the start) to the end of the command, or,
where the controller was killed, of the last process. Ends with 1 when a run hung, left something or ended otherwise than
CASES says. script/test --matrix runs it.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
import harness  # noqa: E402

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "shoal", "frameworks")
REGAINED = "rank lost and regained"
FAULTS = ("none", "worker killed", "ps killed", "wrong exit", REGAINED, "cancelled", "controller killed")
START_SECONDS, END_SECONDS = 90, 90
STEPS, PAUSE = 160, 0.05  # 8 s of training
PLAIN = "plain"  # the environment that every machine has
SUCCEEDED, FAILED, CANCELLED = "succeeded", "failed", "cancelled"


class Case:
    """A job of examples/: who is killed as worker and as ps, how often it says that it is ready, how its faults end,
    how many steps make 8 s, which faults are not tried, what is set beside its file, who exits with 3 if not the worker, and
    whether it is elastic."""

    def __init__(self, job, environment, ready, ends, worker="worker-1", server=None, steps=STEPS, settings=None, without=(),
                 options=(), exits=None, elastic=False):
        self.job, self.environment, self.ready, self.steps = job, environment, ready, steps
        self.settings, self.without, self.options, self.elastic = settings or {}, without, options, elastic
        self.worker, self.server, self.ends, self.exits = worker, server, ends, exits or worker

    def tries(self, fault):
        """Whether there is somebody to do it to."""
        return (fault not in self.without and (fault != "ps killed" or self.server is not None)
                and (fault != REGAINED or self.elastic))

    def expected(self, fault):
        """The verdicts that are right."""
        return self.ends.get(fault) or {"none": (SUCCEEDED,), "wrong exit": (FAILED,), "cancelled": (CANCELLED,),
                                        "controller killed": (CANCELLED,)}.get(fault, (SUCCEEDED,))


CASES = {
    "TensorFlow ParameterServerStrategy": Case(
        "tensorflow/parameter_server.yaml", "tensorflow", 5, server="ps-0", ends={}),
    "TensorFlow MultiWorkerMirroredStrategy": Case(
        "tensorflow/multi_worker.yaml", "tensorflow", 2, ends={}),
    "TensorFlow 1 between-graph": Case(
        "tensorflow/between_graph.yaml", "tensorflow", 4, server="ps-0", ends={}),
    "PyTorch DDP": Case("pytorch/ddp.yaml", "pytorch", 3, ends={}),
    # The first of several processes that ends decides over its task.
    "PyTorch DDP, 2 tasks of 2 processes": Case(
        "pytorch/ddp.yaml", "pytorch", 4, ends={},
        options=("--set", "roles.worker.replicas=2", "--set", "roles.worker.processes=2")),
    # Who exits with 3 is lost for good; the others go on without it.
    "PyTorch DDP, elastic 2:3": Case("pytorch/elastic.yaml", "pytorch", 3, ends={"wrong exit": (SUCCEEDED,)}, elastic=True),
    "MXNet dist_sync (ps-lite)": Case("mxnet/kvstore.yaml", "mxnet", 5, server="server-0", ends={}),
    "XGBoost 3 (rabit, JSON)": Case("xgboost/train.yaml", "xgboost", 3, ends={}),
    "XGBoost 1.7 (rabit, binary)": Case("xgboost/train.yaml", "xgboost1", 3, ends={}),
    "Open MPI (mpirun)": Case("mpi/ring.yaml", "mpi", 4, ends={}, settings={"MPI": "openmpi"}),
    # MPICH's mpiexec itself goes on waiting for ranks that wait for one that has exited without MPI_Abort.
    "MPICH (mpirun)": Case("mpi/ring.yaml", "mpi", 4, ends={}, settings={"MPI": "mpich"}, without=("wrong exit",)),
    "Open MPI 5 (mpi4py)": Case("mpi/ring_python.yaml", "openmpi5", 4, ends={}),
    "MPICH 5 (mpi4py)": Case("mpi/ring_python.yaml", "mpich5", 4, ends={}, without=("wrong exit",)),
    "Intel MPI (mpi4py)": Case("mpi/ring_python.yaml", "intelmpi", 4, ends={}, settings={"MPIRUN_OPTIONS": "-genvnone"}),
    "Horovod (PyTorch, Gloo)": Case("horovod/train.yaml", "horovod", 3, ends={}),
    "Spark (pyspark)": Case("spark/pi.yaml", "spark", 1, ends={}, steps=40, exits="driver-0"),
    # As `ps` the service itself is killed: its clients ask again until it has come back.
    "HTTP service with readiness": Case(
        "service/service.yaml", PLAIN, 3, ends={}, worker="client-1", server="web-0"),
}


class Outcome:
    """What one run showed."""

    def __init__(self, framework, fault):
        self.framework, self.fault = framework, fault
        self.verdict, self.reason, self.seconds, self.left, self.wrong = "", "", 0.0, [], []

    def row(self):
        """The run as a line of the table."""
        return f"| {self.framework} | {self.fault} | {self.verdict} | {self.seconds:.1f} | {len(self.left)} |"


def victims(home, task):
    """The program of a task: the process of it that no other process of it has started."""
    role, index = task.rsplit("-", 1)
    found = [p for p in home.processes() if p.environ.get("SHOAL_ROLE") == role and p.environ.get("SHOAL_INDEX") == index
             and p.argv and re.match("python|java|ring$", os.path.basename(p.argv[0]))]
    pids = {p.pid for p in found}
    return [p for p in found if p.ppid not in pids]


def preloaded(home):
    """What sitecustomize.py does in Python, for programs in C."""
    library = home.path("inject.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, os.path.join(HERE, "inject", "exit.c"), "-lpthread"], check=True)
    return library


def says(process, size, least):
    """Waits until ranks have said so often that they are among so many."""
    return harness.poll_until(lambda: len(re.findall(rf"rank \d of {size} from", harness.said(process))) >= least
                              or process.poll() is not None, START_SECONDS * harness.PATIENCE, 0.05) and process.poll() is None


def lose_and_regain(home, process, exit_file):
    """One rank of three ends for good, two go on, the third comes back, all three go on; a sentence if not."""
    with open(exit_file, "w", encoding="utf-8"):
        pass
    if not says(process, 2, 2):
        return "two did not go on"
    os.unlink(exit_file)
    before = len(re.findall(r"rank \d of 3 from", harness.said(process)))
    code, out, err = home.run("scale", "elastic", "worker=3")
    if code != 0:
        return f"scale ended with {code}: {out}{err}"
    if not says(process, 3, before + 3):
        return "three did not go on"
    steps = [int(step) for step in re.findall(r"from step (\d+)", harness.said(process))]
    return "" if steps == sorted(steps) and steps[-1] > 0 else f"it did not go on from what was saved: {steps}"


def do_fault(home, process, case, fault, exit_file):
    """Does it; a sentence when there is nobody to do it to."""
    if fault in ("worker killed", "ps killed"):
        task = case.worker if fault == "worker killed" else case.server
        found = victims(home, task)
        if not found:
            return f"there is no process of {task}"
        if "roles.worker.processes=2" in case.options:
            found = found[:1]
        for victim in found:
            os.kill(victim.pid, signal.SIGKILL)
    elif fault == "wrong exit":
        with open(exit_file, "w", encoding="utf-8"):
            pass
    elif fault == REGAINED:
        return lose_and_regain(home, process, exit_file)
    elif fault == "cancelled":
        process.send_signal(signal.SIGINT)
    elif fault == "controller killed":
        process.kill()
    return ""


def end_of(home, process, fault, outcome):
    """Waits for the end; fills in verdict, seconds, reason."""
    begin = time.monotonic()
    if fault == "controller killed":
        done = harness.poll_until(lambda: not home.processes(), END_SECONDS * harness.PATIENCE)
    else:
        done = harness.poll_until(lambda: process.poll() is not None, END_SECONDS * harness.PATIENCE)
    outcome.seconds = time.monotonic() - begin
    if not done:
        outcome.verdict = "hangs"
        return
    verdict = home.verdict()
    outcome.verdict = verdict.get("state") or {0: SUCCEEDED, 1: FAILED, 130: CANCELLED}.get(process.poll(), "none")
    outcome.reason = verdict.get("reason", "")


def run(binary, framework, fault, verbose=False):
    """One job and its fault."""
    case, outcome = CASES[framework], Outcome(framework, fault)
    with harness.Home(binary) as home:
        os.symlink(os.path.join(harness.SOURCE, "examples"), home.path("examples"))
        exit_file = home.path("exit-now")
        path = os.path.join(CACHE, case.environment, "bin") + ":" + os.environ["PATH"]
        settings = {"PYTHONPATH": os.path.join(HERE, "inject"), "STEPS": case.steps, "PAUSE": PAUSE,
                    "TEST_EXIT_FILE": exit_file, "TEST_EXIT": case.exits, **case.settings}
        if case.environment == "mpi":
            settings["LD_PRELOAD"] = preloaded(home)
        options = [word for name, value in settings.items() for word in ("--set", f"env.{name}={value}")]
        begin = time.monotonic()
        process = home.start("run", os.path.join("examples", case.job), *options, *case.options, env={"PATH": path})
        harness.poll_until(lambda: len(re.findall(r"\| (?:\[\d+\] )?ready$", harness.said(process), re.M)) >= case.ready
                           or process.poll() is not None, START_SECONDS * harness.PATIENCE, 0.05)
        if process.poll() is not None:
            outcome.wrong.append("it ended before all were ready")
        elif fault != "none":
            # A second into its training.
            if harness.poll_until(lambda: process.poll() is not None, 1.0):
                outcome.wrong.append("it was over before the fault; give it more steps")
            problem = do_fault(home, process, case, fault, exit_file)
            if problem:
                outcome.wrong.append(problem)
        end_of(home, process, fault, outcome)
        if fault == "none":
            outcome.seconds = time.monotonic() - begin
        text = harness.said(process)
        if verbose:
            sys.stderr.write(text)
        if outcome.verdict == "hangs":
            process.kill()
        outcome.left = home.leftovers(5.0) if outcome.verdict != "hangs" else [str(p) for p in home.processes()]
        if outcome.verdict not in case.expected(fault):
            outcome.wrong.append(f"{outcome.verdict}, expected {' or '.join(case.expected(fault))}: {outcome.reason}\n"
                                 + "\n".join(text.splitlines()[-25:]))
        outcome.wrong += [f"left behind: {left}" for left in outcome.left]
    return outcome


def available():
    """The environments that script/frameworks could make."""
    done = subprocess.run([os.path.join(harness.SOURCE, "script", "frameworks")], stdout=subprocess.PIPE, check=False)
    return {PLAIN} | set(done.stdout.decode().split())


def selection(only, environments):
    """[(framework, fault)] that are to be run."""
    chosen = []
    for framework, case in CASES.items():
        for fault in FAULTS:
            if not case.tries(fault) or case.environment not in environments:
                continue
            if not only or any(o in (framework, f"{framework}/{fault}") or o == f"/{fault}" for o in only):
                chosen.append((framework, fault))
    return chosen


def table(rows):
    """The rows under the table's head, as docs/frameworks.md holds it."""
    return "\n".join(["| program | fault | verdict | seconds | processes left |", "| --- | --- | --- | --- | --- |"] + rows) + "\n"


def merged(old, outcomes):
    """The rows of a table that stands, those of what was run now among them anew, in the order of CASES."""
    rows = {tuple(cell.strip() for cell in line.split("|")[1:3]): line for line in old.splitlines()}
    rows.update({(o.framework, o.fault): o.row() for o in outcomes})
    return [rows[key] for key in selection([], {c.environment for c in CASES.values()}) if key in rows]


def write_table(path, outcomes):
    """Puts what was run into the table between the page's marks."""
    with open(path, encoding="utf-8") as f:
        page = f.read()
    head, _, rest = page.partition("<!-- matrix -->\n")
    old, end, tail = rest.partition("<!-- end of matrix -->\n")
    if not end:
        raise SystemExit(f"{path}: expected the marks <!-- matrix --> and <!-- end of matrix -->")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"{head}<!-- matrix -->\n{table(merged(old, outcomes))}{end}{tail}")


def main():
    """Runs what is selected and says how it went."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shoal", default=harness.DEFAULT_BINARY)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--write", metavar="PAGE")
    parser.add_argument("--record", metavar="FILE", help="adds to it a JSON line for every run; --from-record reads them")
    parser.add_argument("--from-record", metavar="FILE")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    outcomes, wrong = [], 0
    if arguments.from_record:
        latest = {}
        with open(arguments.from_record, encoding="utf-8") as f:
            for line in f:
                outcome = Outcome("", "")
                outcome.__dict__.update(json.loads(line))
                latest[outcome.framework, outcome.fault] = outcome
        outcomes = [latest[key] for key in selection([], {c.environment for c in CASES.values()}) if key in latest]
        print(table([o.row() for o in outcomes]), end="")
    else:
        chosen = selection(arguments.only, available())
        if not chosen:
            print("none of the frameworks can be had here")
            return 77
        for framework, fault in chosen:
            outcome = run(arguments.shoal, framework, fault, arguments.verbose)
            outcomes.append(outcome)
            wrong += bool(outcome.wrong)
            print(outcome.row(), outcome.reason, flush=True)
            for sentence in outcome.wrong:
                print("  wrong:", sentence, flush=True)
            if arguments.record:
                with open(arguments.record, "a", encoding="utf-8") as f:
                    f.write(json.dumps(outcome.__dict__) + "\n")
    if arguments.write:
        write_table(arguments.write, outcomes)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
