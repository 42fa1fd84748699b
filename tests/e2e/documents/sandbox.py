"""Where documented commands are run: a directory with the files that they name and a SHOAL_HOME of its own, beside running jobs of the
names that they use. All of it is gone with the test, however that ends."""
import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import documented  # noqa: E402
import harness  # noqa: E402
import instead  # noqa: E402
import places  # noqa: E402
from parquet_file import parquet  # noqa: E402
import stall_test  # noqa: E402

# Jobs that commands ask about, by name. A trainer that trains until it is stopped:
TRAINER = """\
name: %s
framework: shoal
learn: {algorithm: word2vec, dim: 20, epochs: 100000, min_count: 1, threads: 1}
data: {train: live.txt}
roles:
  server: {replicas: 2, min: 1, max: 4, follows: worker}
  worker: {replicas: 2}
outputs: {model: live-%s}
"""
# a program of the user's own, which reports numbers, and whose worker 3 runs for the third time,
PROGRAM = """\
name: %s
roles:
  worker:
    replicas: 4
    min: 1
    max: 8
    ports: [web]
    restart: {backoff: 10ms}
    command:
    - sh
    - -c
    - |
      echo x > $SHOAL_OUTPUT/x
      echo attempt $SHOAL_ATTEMPT
      for step in 1 2 3; do echo "shoal.metric {\\"step\\": $step, \\"loss\\": 0.$((9 - step))}"; done
      [ $SHOAL_INDEX != 3 ] || [ $SHOAL_ATTEMPT -ge 2 ] || kill -9 $$
      echo ready
      %s
"""
# one with parameter servers,
EMBEDDING = """\
name: %s
roles:
  server: {replicas: 2, command: ["@shoal", ps-server], ports: [ps], follows: worker}
  worker: {replicas: 2, command: [sh, -c, "echo ready; exec sleep 1000"]}
"""
# and one that hangs: worker 1 waits for worker 0, which does not read, and which is the last to stand still.
HUNG = stall_test.HUNG.replace("name: hung", "name: %s").replace("@DO@", "report").replace(
    'print("serving nobody")', 'select.select([], [], [], 3); print("serving nobody")')  # movement is looked for each second
LIVE = {"vectors": TRAINER, "word2vec": TRAINER, "mnist": PROGRAM % ("%s", "exec sleep 1000"), "embedding-small": EMBEDDING, "hung": HUNG}
# The other names by which documents speak of them, and what their placeholders stand for.
ALSO = {"word": "word2vec", "JOB": "mnist", "embedding": "embedding-small"}
PLACEHOLDERS = {"NAME": "input", "K": "1"}
ON_A_JOB = re.compile(r"(?:build/release/)?shoal (tables|scale|exec|forward|outputs|suspend|resume|stop|show|why|logs|plot|report(?= [\w-]+-7f3a9c)) (?:-\S+ (?:\d+ )?)*([\w-]+)")
# What must have been done before a command, since another example undid it.
BEFORE = {"shoal tables word --drain 1": "shoal stop word --now",
          "shoal predict model --data test.svm": "shoal train logistic --data train.svm --output model",
          "shoal train linear --data newer.csv --from ages --output ages":
              "shoal train linear --data people.csv --label age --output ages",
          "shoal models show ages@2": " && ".join(["shoal train linear --data people.csv --label age --output ages"] * 2),
          "shoal publish ages words --listen 0.0.0.0:8500 --token-file secret": "shoal train word2vec --data text8 --output words",
          "shoal rollback ages": "for i in 1 2; do n=$(shoal models import ages --json | jq .version) && shoal models promote ages@$n; done",
          "shoal show ./model --top 50": "shoal train logistic --data train.svm --output model"}

# Commands whose examples are about files and models; the others' are about jobs.
MODEL_COMMANDS = ("simulate", "train", "nearest", "analogy", "evaluate", "predict", "report", "map", "models", "publish", "rollback", "doctor", "completion", "version", "data")

TEXT = "the king and the queen saw the sea and bread in london and paris a man a woman france italy wine silver heaven moses\n" * 300
SPARSE = "".join(f"{i % 2} 1:{i % 7} {2 + i % 2}:1\n" for i in range(200))
FIELDS = "".join(f"{i % 2} {i % 3}:{i % 7}:1 1:{8 + i % 2}:1\n" for i in range(200))
PEOPLE = "label,income,zip,age\n" + "".join(f"{i % 2},{i % 2},z{i % 5},{i % 40}\n" for i in range(200))
ROWS = [line.split(",") for line in PEOPLE.splitlines()]
EVENTS = "".join(f'{{"user": {i}, "clicked": {"true" if i % 2 else "false"}}}\n' for i in range(2000))
PAIRS = "king\tqueen\t8\nman\twoman\t7\nsea\tbread\t1\n"
JOB = """\
name: job
framework: shoal
learn: {algorithm: word2vec, dim: 20, epochs: 1, min_count: 1}
data: {train: {source: text.txt}}
roles: {server: {replicas: 1}, worker: {replicas: 2}}
outputs: {model: job-vectors}
"""
BATCH_JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: "example/%s", command: [echo, "%s"]}]}
"""
SEVERAL = BATCH_JOB.replace("%s", "prepare") + "---\n" + BATCH_JOB.replace("%s", "train")
SCRIPT = "#!/bin/bash\n#SBATCH --ntasks=2\nsrun echo trained\n"
METRONOME = json.dumps({"id": "nightly", "run": {"cmd": "echo trained", "cpus": 1, "mem": 64}})
TRAIN_JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: torch}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 2, image: example/torch, command: [echo, trained]}
"""
# What `kubectl get clustertrainingruntime torch-distributed -o yaml` prints.
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch-distributed}
spec:
  mlPolicy: {numNodes: 1, torch: {numProcPerNode: auto}}
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec: {template: {spec: {containers: [{name: node, image: example/torch}]}}}
"""
# Data, jobs and programs of the reader.
FILES = {
    "password.txt": "hunter2\n", "secret": "a secret of thirty-two letters..\n", "events.jsonl": EVENTS, "events-1.jsonl": EVENTS, "new.csv": "user\n7\n8\n", "key.json": "{}\n", "policy.json": "{}\n", "text.txt": TEXT, "live.txt": TEXT * 100, "text8": TEXT, "news/a.txt": TEXT, "train.svm": SPARSE, "test.svm": SPARSE, "train.libsvm": SPARSE,
    "test.libsvm": SPARSE, "new.libsvm": SPARSE, "new.svm": SPARSE, "train.ffm": FIELDS, "test.ffm": FIELDS,
    "people.csv": PEOPLE, "newer.csv": PEOPLE, "train.csv": PEOPLE, "test.csv": PEOPLE, "wordsim353.tsv": PAIRS, "simlex999.txt": PAIRS,
    "questions-words.txt": ": capitals\nfrance paris italy london\nking queen man woman\n",
    "job.yaml": JOB, "nightly.yaml": JOB, "jobs.yaml": SEVERAL, "train.sbatch": SCRIPT, "metronome.json": METRONOME,
    "trainjob.yaml": TRAIN_JOB, "runtime.yaml": RUNTIME, "train.py": "print('trained')\n",
    "nightly.sql": 'set day = "none" where type="defaultParam";\nload csv.`people.csv` as people;\n!desc people;\n',
    "linear.dmlc": "#!/bin/sh\necho trained\n", "data.conf": "", "test_kv_app": "#!/bin/sh\n",
    "people.parquet": parquet({name: [row[i] if name == "zip" else int(row[i]) for row in ROWS[1:]] for i, name in enumerate(ROWS[0])}),
    "articles.parquet": parquet({"title": ["a", "b"], "body": ["the sea", "the king"]}),
}
PACKED = ("news/a.txt", "new.svm", "clicks/a.svm")  # documents name them with .zst
EXAMPLES = {"tfjob.yaml": "import/tfjob.yaml", "pytorchjob.yaml": "import/pytorchjob.yaml", "marathon.json": "dcos-word2vec/marathon.json", "word2vec.py": "dcos-word2vec/word2vec.py",
            "word2vec.json": "dcos-word2vec/marathon.json", "marathon-group.json": "import/marathon-service.json"}
# Programs of the task's machine that not every machine has.
STAND_INS = {"kubectl": "cat runtime.yaml", "nvidia-smi": "echo GPU", "py-spy": "echo Thread", "python": f"exec {sys.executable} \"$@\""}


# Pages whose job.yaml is the reader's own, not the first one that they show.
OWN_JOB = ("docs/ps.md", "docs/long-jobs.md")
def files_of(page):
    """The files that a page shows: YAML under its name in a first line `# NAME.yaml`, else the first whole job as job.yaml; those of an
    example's directory."""
    files = {}
    for _, text in documented.yaml_of_page(harness.SOURCE, page) + documented.yaml_of_page(harness.SOURCE, page, "text"):
        name = re.match(r"# (\S+\.yaml)\n", text)
        if name:
            files[name.group(1)] = text
        elif page not in OWN_JOB and page.startswith("docs/engines/") and re.search("^(roles|command):", text, re.M):
            files.setdefault("job.yaml", text.replace("/shared/text.txt", "text.txt").replace("/mnt/nfs/text.txt", "text.txt"))
        elif text.startswith("schedule:"):
            files["nightly.yaml"] = JOB + text
    folder = os.path.dirname(os.path.join(harness.SOURCE, page))
    if page.startswith("examples/dcos"):
        with open(os.path.join(folder, "job.yaml"), encoding="utf-8") as text:
            files["job.yaml"] = text.read()
    return files


# What is typed at commands that talk on a terminal until they are left.
DIALOGUES = {"shoal sql": "!show formats;\nexit\n"}

# Other exit codes than 0 that are right.
ALSO_RIGHT = dict.fromkeys(("shoal doctor", "build/release/shoal doctor", "shoal doctor --json | jq '.findings[] | select(.verdict != \"ok\")'"),
                           (0, 1))  # 1: it finds what other tests' jobs have left
# What a person types on a terminal.
TYPED = {"shoal secret set db-password": "hunter2\n"}


class CommandEnded(Exception):
    """A command that was to go on has ended, or did not say what it should."""


class Sandbox:
    """A directory for the commands of one page. files: what the page itself shows of files, by name. also: other names of jobs. live: the
    jobs that are started when a command asks about them."""

    def __init__(self, files=(), also=(), live=LIVE):
        self.home = harness.Home()
        self.home.guard()
        self.root = self.home.path("at")
        self.exports, self.started = {}, []
        self.names, self.live_jobs = {**ALSO, **dict(also)}, live
        for folder in ("bin", "at/news", "at/build/release", "user/.config/fish/completions"):
            os.makedirs(self.home.path(folder))
        for place in ("bin/shoal", "at/build/release/shoal"):
            os.symlink(self.home.binary, self.home.path(place))
        os.symlink(os.path.join(harness.SOURCE, "examples"), self.home.path("at/examples"))
        for name, text in STAND_INS.items():
            os.chmod(self.home.write(f"bin/{name}", f"#!/bin/sh\n{text}\n"), 0o755)
        for name, text in {**FILES, **dict(files)}.items():
            os.makedirs(os.path.dirname(os.path.join(self.root, name)), exist_ok=True)
            os.chmod(self.home.write(f"at/{name}", text), 0o755 if text[:9] == "#!/bin/sh" else 0o644)
        packed = [path for path in (os.path.join(self.root, name) for name in PACKED) if os.path.exists(path)]
        subprocess.run(["zstd", "-q", "--rm", *packed], check=True)
        for name, place in EXAMPLES.items():
            shutil.copy(os.path.join(harness.SOURCE, "examples", place), os.path.join(self.root, name))

    def close(self):
        self.home.__exit__()
        for process in self.started:
            process.wait()

    def environ(self):
        """No engine but the local one is found."""
        nowhere = self.home.path("nowhere")
        return self.home.environ({
            "PATH": self.home.path("bin") + ":" + os.environ["PATH"], "HOME": self.home.path("user"), "KUBECONFIG": nowhere,
            "DOCKER_HOST": "unix://" + nowhere, "SHOAL_MARATHON_URL": "http://127.0.0.1:1", "SHOAL_METRONOME_URL": "http://127.0.0.1:1",
            "SHOAL_KUBE_LAUNCHER_IMAGE": "registry.example/shoal:1", **self.exports})

    def start(self, line, cwd=None, stdin=subprocess.DEVNULL):
        """Starts a line in a shell and a process group of its own; what it prints is in Popen.log."""
        log = self.home.path(f"said-{len(os.listdir(self.home.root))}")
        with open(log, "wb") as out:
            process = subprocess.Popen(["bash", "-o", "pipefail", "-c", line], stdin=stdin, stdout=out, stderr=subprocess.STDOUT,
                                       cwd=cwd or self.root, env=self.environ(), start_new_session=True)
        process.log = log
        self.started.append(process)
        return process

    def type(self, line, text):
        """Runs a line on a terminal on which this is typed once it asks: exit code and what it said."""
        here, there = pty.openpty()
        try:
            process = self.start(line, stdin=there)
            self.await_words(process, ": ")
            os.write(here, text.encode())
            return self.finish(process)
        finally:
            os.close(here)
            os.close(there)

    def run(self, line, cwd=None):
        """Runs a line to its end: exit code, or -9 after a minute, and what it said."""
        return self.finish(self.start(line, cwd))

    def finish(self, process):
        try:
            process.wait(60 * harness.PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return process.returncode, harness.said(process)

    def certify(self, host):
        """server.crt and server.key for a host, of an authority that the machine of the commands trusts."""
        certificate = os.path.join(self.root, "server.crt")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=" + host, "-addext",
                        "subjectAltName=DNS:" + host, "-keyout", os.path.join(self.root, "server.key"), "-out", certificate],
                       check=True, stderr=subprocess.DEVNULL)
        self.exports["SSL_CERT_FILE"] = certificate

    def subcommands(self, *words):
        """Names of the subcommands of a command; of shoal without words."""
        return documented.subcommands_of_help(self.home.run(*words, "--help")[1])

    def examples(self, chosen, *words):
        """The examples of a command's help and of its subcommands', of shoal's those that are chosen."""
        yield from documented.examples_of_help(" ".join(("shoal", *words)), self.home.run(*words, "--help")[1])
        for name in self.subcommands(*words):
            if words or name in chosen:
                yield from self.examples(chosen, *words, name)

    # ---- jobs beside the commands ----

    def find(self, name, *states):
        """The ID of a job of that name in one of these states, or None."""
        out = self.home.run("jobs", "--all", "--json")[1]
        jobs = [job for job in map(json.loads, out.splitlines()) if job["name"] == name and job["state"] in states]
        return jobs[-1]["id"] if jobs else None

    def running(self, job, role):
        """How many tasks of the role run."""
        tasks = json.loads(self.home.run("show", "--json", self.names.get(job, job))[1])["tasks"]
        return sum(task["role"] == role and task["state"] == "running" for task in tasks)

    def live(self, name):
        """The ID of a running job of that name, which is started if there is none."""
        running = self.find(name, "running")
        if running:
            return running
        suspended = self.find(name, "suspended")
        if name not in self.live_jobs:
            raise CommandEnded(f"no job {name} runs")
        text = self.live_jobs[name]
        path = self.home.write(f"at/live-{name}.yaml", text % ((name,) * text.count("%s")))
        process = self.start(f"shoal resume {suspended}" if suspended else f"exec nice -n 10 shoal run {path}")
        self.await_words(process, {TRAINER: "train ", HUNG: "stalled", EMBEDDING: "ready"}.get(text, "worker-3 | ready"))
        return self.find(name, "running")

    def await_words(self, process, words):
        said = harness.poll_until(lambda: words in harness.said(process) or process.poll() is not None, 60 * harness.PATIENCE, 0.05)
        if not said or process.poll() is not None:
            raise CommandEnded(f"expected {words!r} of a command that goes on, got (exit code {process.poll()})\n{harness.said(process)}")

    def substitute(self, line):
        """The line with the real ID in place of a document's example of one."""
        found = ON_A_JOB.match(line)
        if not found:
            return line
        name = re.sub(r"-(7f3a9c|1b6d2e)$", "", found.group(2))
        name = self.names.get(name, name)
        if found.group(1) == "resume":
            job = self.find(name, "suspended") or self.live(name)
            if self.find(name, "running"):
                self.home.run("suspend", job)
        else:
            job = self.live(name)
        words = [PLACEHOLDERS.get(word, word) for word in line.split(" ")]
        words = [job if word in (name + "-7f3a9c", "JOB") else word for word in words]
        if re.search(" --curves| --metric|^shoal plot", line):
            harness.poll_until(lambda: json.loads(self.home.run("show", "--json", job)[1])["series"], 60 * harness.PATIENCE, 0.1)
        return re.sub(r"\b([a-z0-9]+)-1b6d2e\b", lambda another: self.ended(another.group(1)), " ".join(words))

    def ended(self, name):
        """The ID of another job of that name, which has ended."""
        self.run(f"shoal run {self.home.write('at/ended.yaml', PROGRAM % (name, ''))}")
        return self.find(name, "succeeded")


def check_script(line):
    """What is wrong with the scripts and options of a line: sentences."""
    wrong = []
    for part in re.split(r"[;|&]+", line):
        words = part.split()
        if not words or not words[0].startswith("script/"):
            continue
        script = os.path.join(harness.SOURCE, words[0])
        done = subprocess.run([script, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        known = done.stdout
        bench = os.path.join(harness.SOURCE, "bench", (words[1:2] or [""])[0].replace("-", "_") + ".py")
        if words[0] == "script/bench" and os.path.isfile(bench):
            with open(bench, encoding="utf-8") as text:
                known += text.read()
        if done.returncode != 0:
            wrong.append(f"{words[0]} --help ends with {done.returncode}")
        wrong += [f"{words[0]} does not know {word}" for word in words[1:] if word.startswith("--") and word not in known]
        if words[1:] and not words[1].startswith("-") and words[1] not in known:
            wrong.append(f"{words[0]} does not know {words[1]}")
    return wrong


class DocumentTest(unittest.TestCase):
    """Runs the commands of pages and help texts."""

    def sandbox(self, **options):
        sandbox = Sandbox(**options)
        self.addCleanup(sandbox.close)
        return sandbox

    def check(self, sandbox, command):
        """Runs one command as the document prints it, or what stands in for it; nothing if another test of this directory runs it."""
        if places.of(command.text) in places.BESIDE:
            return
        with self.subTest(where=f"{command.page}:{command.line}", command=command.text):
            begin = time.monotonic()
            try:
                fault = self.check_instead(sandbox, command) if command.text in instead.INSTEAD else self.run_one(sandbox, command)
            except CommandEnded as e:
                fault = str(e)
            print(f"{time.monotonic() - begin:6.2f} s  {'failed  ' if fault else ''}{command}", flush=True)
            if fault:
                self.fail(fault)

    def check_instead(self, sandbox, command):
        line, expected = instead.INSTEAD[command.text]
        if line == instead.CHECK_SCRIPT:
            return "; ".join(check_script(command.text))
        code, said = sandbox.run(line, None if line.startswith("shoal ") else harness.SOURCE)
        return "" if code == expected else f"`{line}` ended with {code}, expected {expected}\n{said}"

    def run_one(self, sandbox, command):
        exported = re.fullmatch(r"export (\w+)=(\S+)", command.text)
        if exported:
            sandbox.exports[exported.group(1)] = exported.group(2)
            return ""
        if command.text in BEFORE:
            code, said = sandbox.run(sandbox.substitute(BEFORE[command.text]))
            if code != 0:
                return f"{BEFORE[command.text]}: exit code {code}\n{said}"
        line = sandbox.substitute(command.text)
        if re.match(r"shoal (forward|logs -f|rabit-tracker|horovod-rendezvous|publish)", line):
            return self.interrupt(sandbox, line)
        if line.startswith("shoal resume"):
            return self.resume(sandbox, line)
        if line in DIALOGUES:  # bsdutils' script gives it a terminal
            line = f"printf {shlex.quote(DIALOGUES[line])} | script -qec {shlex.quote(line)} /dev/null"
        code, said = sandbox.type(line, TYPED[line]) if line in TYPED else sandbox.run(line)
        scaled = re.match(r"shoal scale (\S+) (\w+)=(\d+)$", line)
        if scaled and code == 0:  # what comes next asks a job that has settled
            harness.poll_until(lambda: sandbox.running(scaled[1], scaled[2]) == int(scaled[3]), 60 * harness.PATIENCE, 0.1)
        if code not in ALSO_RIGHT.get(line, (0,)):
            return f"exit code {code}\n{said}"
        if command.output and not documented.matches(command.output, said):
            return "expected (… and numbers vary)\n" + "\n".join(command.output) + "\ngot\n" + said
        return ""

    def interrupt(self, sandbox, line):
        """A command that goes on until Ctrl-C: it prints something or listens at its port, and ends then."""
        port = re.search(r"(?:forward \S+ \S+ |--port |--listen \S+:)(\d+)", line)
        if line.startswith("shoal publish") and not port:
            port = re.match(r"(8500)", "8500")  # its default
        if port:  # of this machine: another test may have it now
            harness.poll_until(lambda: harness.bindable(int(port.group(1))), 60 * harness.PATIENCE, 0.1)
        process = sandbox.start(line)
        if port:
            harness.poll_until(lambda: int(port.group(1)) in sandbox.home.ports() or process.poll() is not None, 60 * harness.PATIENCE)
        sandbox.await_words(process, "" if port else "\n")
        os.killpg(process.pid, signal.SIGINT)
        code = process.wait(30 * harness.PATIENCE)
        return "" if code in (0, 130, -signal.SIGINT) else f"exit code {code} after Ctrl-C\n{harness.said(process)}"

    def resume(self, sandbox, line):
        name = re.match(r"shoal resume ([a-z0-9]+)", line).group(1)
        name = sandbox.names.get(name, name)
        process = sandbox.start(line)
        resumed = harness.poll_until(lambda: sandbox.find(name, "running") or process.poll() is not None, 60 * harness.PATIENCE, 0.1)
        if resumed is True or not resumed:
            return f"the job does not run again\n{harness.said(process)}"
        if sandbox.live_jobs.get(name) == TRAINER:  # what comes next asks for its tables
            harness.poll_until(lambda: sandbox.run(f"shoal tables {resumed} input")[0] == 0, 60 * harness.PATIENCE, 0.1)
        return ""


class HelpTest(DocumentTest):
    """Runs the examples of help texts, in the order of the commands."""

    def check_help(self, box, chosen):
        found = {command.text: command for command in box.examples(chosen)}
        self.assertGreater(len(found), 20)
        for command in found.values():
            self.check(box, command)
