"""The cost of `--engine kubernetes` on a real cluster of two nodes on this machine (script/bench kubernetes brings it up).

Start: from the command until the last of 7 tasks runs, beside `kubectl apply` of plain Jobs, of 7 pods and of as many as the job has
(8, with its coordinator); every task writes a file of the node. Requests: the API server's audit log of the job's user from
the command to its end, without watches. Cleanup: from the job's result until the cluster has no object of it. Large: 500 tasks on
simulated nodes (tests/cluster/fake_nodes.py): times, and the controller's peak memory.
"""
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import measure

sys.path.insert(0, os.path.join(measure.ROOT, "tests", "cluster"))
sys.path.insert(0, os.path.join(measure.ROOT, "tests", "e2e"))
from fake_nodes import RESOURCE, FakeNodes  # noqa: E402
from harness import poll_until  # noqa: E402

IMAGE = os.environ.get("SHOAL_TEST_IMAGE", "")
KINDS = "jobs,pods,services,secrets"
GRACE = 5  # seconds, limits.stop_grace of jobs here

_PEER = """\
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, labels: {{peer: x}}}}
spec:
  completionMode: Indexed
  completions: {count}
  parallelism: {count}
  template:
    metadata: {{labels: {{peer: x}}}}
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      containers:
      - name: task
        image: {image}
        command: [sh, -c, "{script}"]
        volumeMounts: [{{name: marks, mountPath: /marks}}]
      volumes: [{{name: marks, hostPath: {{path: {marks}}}}}]
"""


def kubectl(*arguments, text=None):
    return subprocess.run(["kubectl", *arguments], input=text, capture_output=True, text=True, check=True).stdout


def objects(selector):
    return [one["metadata"]["name"] for one in json.loads(kubectl("get", KINDS, "-l", selector, "-o", "json"))["items"]]


def gone(selector, seconds=90):
    return poll_until(lambda: not objects(selector), seconds, 0.05)


def programs():
    """{(role, index): when it began, by the system's clock} of the trainers on this machine."""
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                env = dict(one.split(b"=", 1) for one in file.read().split(b"\0") if b"=" in one)
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                began = int(file.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
        except OSError:
            continue
        if b"SHOAL_ROLE" in env and len(words) > 1 and words[1] != b"task":
            found[env[b"SHOAL_ROLE"], env[b"SHOAL_INDEX"]] = boot + began
    return found


class Bench:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="shoal-bench-kube.")
        self.marks = os.path.join(self.folder, "marks")
        self.env = dict(os.environ, SHOAL_HOME=os.path.join(self.folder, "state"), SHOAL_LOG="error", SHOAL_ENGINE="kubernetes",
                        KUBECONFIG=os.environ["SHOAL_TEST_KUBE_USER"])
        self.audit = os.path.join(os.environ["SHOAL_TEST_KUBE"], "log", "audit.log")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if error[0] is not None:  # something went wrong: what runs is not left
            print(self.said(), kubectl("get", "pods", "-o", "wide"), file=sys.stderr)
            kubectl("delete", KINDS, "-l", "shoal.dev/job", "--wait=false")
        shutil.rmtree(self.folder, ignore_errors=True)

    def fresh_marks(self):
        shutil.rmtree(self.marks, ignore_errors=True)
        os.mkdir(self.marks)

    def job(self, script, roles, more=""):
        """Starts a job whose tasks each write a mark first."""
        lines = "".join(f"  {role}: {{replicas: {count}{options}, command: [sh, -c, {json.dumps('touch /marks/$SHOAL_ROLE-$SHOAL_INDEX; ' + script)}]}}\n"
                        for role, count, options in roles)
        path = os.path.join(self.folder, "job.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"name: bench\nimage: {IMAGE}\nlimits: {{stop_grace: {GRACE}s}}\nroles:\n{lines}"
                       f"kubernetes: {{volumes: [\"host:{self.marks}:/marks\"]{more}}}\n")
        return self.run(path)

    def run(self, path):
        with open(os.path.join(self.folder, "said"), "w", encoding="utf-8") as said:
            return subprocess.Popen([measure.SHOAL, "run", path], env=self.env, stdin=subprocess.DEVNULL, stdout=said,
                                    stderr=subprocess.STDOUT)

    def said(self):
        with open(os.path.join(self.folder, "said"), encoding="utf-8") as said:
            return said.read()

    def last_mark(self, count, running=None):
        """When the last of this many marks was written, by the system's clock."""
        def all_there():
            assert running is None or running.poll() is None, self.said()
            return len(os.listdir(self.marks)) == count
        assert poll_until(all_there, 90, 0.02), (os.listdir(self.marks), kubectl("get", "pods"))
        return max(os.stat(os.path.join(self.marks, name)).st_mtime for name in os.listdir(self.marks))

    def end(self, running, code):
        assert running.wait(timeout=120) == code, self.said()

    # ---- Start ----

    def ours(self):
        self.fresh_marks()
        begin = time.time()
        running = self.job("trap 'exit 0' TERM; sleep 1000 & wait", [("ps", 2, ""), ("worker", 5, "")])
        seconds = self.last_mark(7, running) - begin
        running.send_signal(signal.SIGINT)
        self.end(running, 130)
        assert gone("shoal.dev/job")
        return seconds

    def trainers(self):
        """word2vec of 2 servers and 5 workers: until the last of their programs has begun, by /proc."""
        text = os.path.join(self.folder, "text")
        with open(text, "w", encoding="utf-8") as file:
            file.write("the sea and the ship and the wave\n" * 200000)
        path = os.path.join(self.folder, "vectors.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"name: bench\nframework: shoal\nlearn: {{algorithm: word2vec, dim: 100, epochs: 50, min_count: 1}}\n"
                       f"data: {{train: {{source: {text}, format: text, shard_by: worker}}}}\nroles: {{server: 2, worker: 5}}\n"
                       f"outputs: {{model: {self.folder}/model}}\nkubernetes: {{volumes: [\"host:{self.folder}:{self.folder}:ro\"]}}\n")
        os.chmod(self.folder, 0o755)
        begin = time.time()
        running = self.run(path)
        assert poll_until(lambda: running.poll() is not None or len(programs()) == 7, 90, 0.02), programs()
        assert running.poll() is None, self.said()
        seconds = max(programs().values()) - begin
        running.send_signal(signal.SIGINT)
        self.end(running, 130)
        assert gone("shoal.dev/job")
        return seconds

    def peer(self, *counts):
        self.fresh_marks()
        text = "---\n".join(_PEER.format(name=f"peer-{i}", count=count, image=IMAGE, marks=self.marks,
                                         script=f"touch /marks/{i}-$JOB_COMPLETION_INDEX; trap 'exit 0' TERM; sleep 1000 & wait")
                            for i, count in enumerate(counts))
        begin = time.time()
        kubectl("apply", "-f", "-", text=text)
        seconds = self.last_mark(sum(counts)) - begin
        kubectl("delete", "jobs", "-l", "peer", "--cascade=background")
        assert gone("peer")
        return seconds

    def start(self, rounds):
        rows = [("shoal run, word2vec of 7 tasks (8 pods)", self.trainers), ("shoal run, 7 programs of an image (8 pods)", self.ours), ("kubectl apply, Jobs of 8 pods", lambda: self.peer(2, 6)),
                ("kubectl apply, Jobs of 7 pods", lambda: self.peer(2, 5))]
        found = measure.interleave(rows, rounds)
        peer = measure.median(found[rows[2][0]])
        return {"start": found}, [measure.table(["from the command until all run, s", "median", "least", "most", "× kubectl's 8 pods"], [
            [name, measure.median(found[name]), min(found[name]), max(found[name]), measure.median(found[name]) / peer] for name, _ in rows])]

    # ---- Requests ----

    def audit_size(self):
        return os.path.getsize(self.audit) if os.path.exists(self.audit) else 0

    def asked(self, since):
        """Requests of the job's user since then: {"verb resource": times}."""
        counts = collections.Counter()
        with open(self.audit, encoding="utf-8") as file:
            file.seek(since)
            for line in file:
                one = json.loads(line)
                if one["verb"] == "watch" or one.get("objectRef", {}).get("subresource") == "proxy":
                    continue  # streams
                target = one.get("objectRef", {})
                counts[" ".join([one["verb"], target.get("resource", "?"), target.get("subresource", "")]).strip()] += 1
        return counts

    def requests(self):
        rows, records = [], {}
        for count in (2, 8, 32):
            self.fresh_marks()
            since = self.audit_size()
            begin = time.time()
            self.end(self.job("sleep 1", [("ps", 1, ", follows: worker"), ("worker", count - 1, "")]), 0)
            assert gone("shoal.dev/job")
            counts = self.asked(since)
            records[count] = counts
            rows.append([count, sum(counts.values()), time.time() - begin, ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))])
        return {"requests": records}, [measure.table(["tasks, of 2 roles", "requests", "s", "which"], rows)]

    # ---- Cleanup ----

    def left(self):
        rows = []
        roles = [("worker", 2, "")]
        for verdict, script, code in (("succeeded", "sleep 1", 0), ("failed", "sleep 1; exit 3", 1),
                                      ("cancelled", "trap 'exit 0' TERM; sleep 1000 & wait", 130),
                                      ("cancelled, programs ignore SIGTERM", "trap '' TERM; while :; do sleep 1; done", 130)):
            self.fresh_marks()
            running = self.job(script, roles)
            marked = self.last_mark(2, running)
            verdict_at = marked + 1 if code < 100 else time.time()
            if code == 130:
                running.send_signal(signal.SIGINT)
            self.end(running, code)
            ended = time.time()
            assert gone("shoal.dev/job")
            rows.append([verdict, ended - verdict_at, time.time() - verdict_at, GRACE + 10])
        return {"left": rows}, [measure.table(["verdict", "s until the command ends", "s until no object is left", "at most"], rows)]

    # ---- Many tasks ----

    def memory(self, pid):
        """Its peak resident memory in MiB."""
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024

    def large(self, count=500):
        self.fresh_marks()
        begin = time.time()
        subprocess.run([measure.SHOAL, "plan", self.plan_of(count)], env=self.env, check=True, stdout=subprocess.DEVNULL)
        planned = time.time() - begin
        since = self.audit_size()
        begin = time.time()
        running = self.job("true", [("worker", count, "")], f", resources: [{RESOURCE}=1]")
        assert poll_until(lambda: self.phases()["Pending"] >= count, 120, 0.2), self.phases()
        made = time.time() - begin
        assert poll_until(lambda: "fits on no node now" in self.said(), 30, 0.2), self.said()
        with FakeNodes(8) as nodes:
            begin = time.time()
            assert poll_until(lambda: running.poll() is not None or len(nodes.running) == count, 240, 0.05), len(nodes.running)
            started = time.time() - begin
            assert running.poll() is None, self.said()
            begin = time.time()
            running.send_signal(signal.SIGINT)
            most = [0.0]
            poll_until(lambda: running.poll() is not None or most.append(self.memory(running.pid)), 120, 0.05)
            self.end(running, 130)
            assert gone("shoal.dev/job")
            stopped = time.time() - begin
        asked = self.asked(since)
        rows = [["planned", f"{planned:.1f} s"], ["all pods made, and why they wait is told", f"{made:.1f} s"],
                ["nodes come: all pods run", f"{started:.1f} s"], ["stopped, nothing left", f"{stopped:.1f} s"],
                ["the controller's resident memory at most", f"{max(most):.0f} MiB"],
                ["requests", ", ".join(f"{n} {what}" for what, n in sorted(asked.items()))]]
        return {"large": rows}, [measure.table([f"a job of {count} tasks", ""], rows)]

    def plan_of(self, count):
        path = os.path.join(self.folder, "large.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"name: bench\nimage: {IMAGE}\nroles:\n  worker: {{replicas: {count}, command: [\"true\"]}}\n")
        return path

    def phases(self):
        return collections.Counter(kubectl("get", "pods", "-l", "shoal.dev/role=worker", "--no-headers",
                                           "-o", "custom-columns=P:.status.phase").split())


def main():
    parser = measure.arguments(__doc__, "kubernetes")
    parser.add_argument("--tasks", type=int, default=500, help="of the large job")
    parser.add_argument("--only", choices=["start", "requests", "left", "large"], help="one of the tables")
    options = parser.parse_args()
    record, tables = {}, []
    with Bench() as bench:
        for name, part in (("start", lambda: bench.start(options.rounds)), ("requests", bench.requests), ("left", bench.left),
                           ("large", lambda: bench.large(options.tasks))):
            if options.only in (None, name):
                values, lines = part()
                record.update(values)
                tables += lines
    measure.finish("kubernetes", options, record, tables)


main()
