"""Jobs on a real Kubernetes of two nodes, and what is done to it while they run. script/test-cluster kubernetes brings it up.

Everything is checked twice: what the command says, and what the cluster has afterwards (nothing).
    kubernetes_test.py [--slow] [NAME…]      slow: nodes are lost, which takes minutes
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("SHOAL_SOURCE") or os.path.dirname(os.path.dirname(HERE))
SHOAL = os.environ.get("SHOAL_BIN") or os.path.join(SOURCE, "build", "dev", "shoal")
IMAGE = os.environ.get("SHOAL_TEST_IMAGE", "shoal.test/busybox:1")
CLUSTER = os.path.join(os.environ.get("SHOAL_TEST_KUBE", ""), "cluster")
SLOW = "--slow" in sys.argv
ROWS = []  # of the table at the end


def kubectl(*arguments, check=True, text=None):
    return subprocess.run(["kubectl", *arguments], capture_output=True, text=True, check=check, input=text, timeout=60).stdout


def objects(kinds="jobs,pods,services,secrets", namespace="default"):
    return json.loads(kubectl("-n", namespace, "get", kinds, "-l", "shoal.dev/job", "-o", "json"))["items"]


def pod_of(role, index=0, phase="Running", namespace="default"):
    for pod in objects("pods", namespace):
        if pod["metadata"]["labels"]["shoal.dev/role"] == role and pod["status"].get("phase") == phase \
                and pod["metadata"]["annotations"].get("batch.kubernetes.io/job-completion-index") == str(index) \
                and "deletionTimestamp" not in pod["metadata"]:
            return pod
    return None


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.1)  # poll


def slow(test):
    return unittest.skipUnless(SLOW, "takes minutes; --slow")(test)


class KubernetesJobs(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="shoal-kube-test.")
        self.env = dict(os.environ, SHOAL_HOME=os.path.join(self.home, "state"), SHOAL_LOG="error", SHOAL_ENGINE="kubernetes")
        self.begun = time.monotonic()

    def tearDown(self):
        left = until(lambda: not objects(), 30) is False and [one["metadata"]["name"] for one in objects()]
        if left:
            kubectl("delete", "jobs,pods,services,secrets", "-l", "shoal.dev/job", "--wait=false", check=False)
        shutil.rmtree(self.home, ignore_errors=True)
        self.assertFalse(left, "objects were left behind")

    def path(self, name):
        return os.path.join(self.home, name)

    def row(self, what, said):
        ROWS.append((what, f"{time.monotonic() - self.begun:.1f} s", said))

    def write(self, text, name="job.yaml"):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def job(self, script, workers=2, more="", resources=""):
        return self.write(f"name: test\nimage: {IMAGE}\nroles:\n  worker:\n    replicas: {workers}\n{resources}"
                          f"    command: [sh, -c, {json.dumps(script)}]\n{more}")

    def start(self, *arguments):
        return subprocess.Popen([SHOAL, *arguments], env=self.env, cwd=self.home, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finish(self, started, code=0, seconds=110):
        try:
            out, _ = started.communicate(timeout=seconds)
        finally:
            started.kill()
        self.assertEqual(started.returncode, code, out)
        return out

    def shoal(self, *arguments, code=0, seconds=110):
        return self.finish(self.start(*arguments), code, seconds)

    def logs(self):
        return subprocess.run([SHOAL, "logs", "test"], env=self.env, capture_output=True, text=True).stdout

    def told(self):
        return subprocess.run([SHOAL, "show", "test"], env=self.env, capture_output=True, text=True).stdout

    # ---- Jobs ----

    def test_a_program_of_an_image(self):
        """busybox alone: no libc, no loader; the launcher has to be static."""
        out = self.shoal("run", self.job("echo here is $SHOAL_INDEX of $SHOAL_ROLE; pwd"))
        self.assertIn("here is 0 of worker", out)
        self.assertIn("here is 1 of worker", out)
        self.row("two programs in a busybox image", "succeeded")

    def test_outputs_come_home(self):
        self.shoal("run", self.job("echo result of $SHOAL_INDEX > $SHOAL_OUTPUT/text"))
        found = []
        for folder, _, files in os.walk(self.home):
            found += [open(os.path.join(folder, name)).read() for name in files if name == "text"]
        self.assertEqual(sorted(found), ["result of 0\n", "result of 1\n"])
        self.row("outputs of two pods", "are here when the command ends")

    def test_word2vec_is_the_same_as_locally(self):
        corpus = self.path("text")
        os.chmod(self.home, 0o755)
        with open(corpus, "w") as file:
            for i in range(40000):
                file.write(f"w{i * 7919 % 997} w{i % 89} w{i % 13}" + ("\n" if i % 10 == 0 else " "))
        digests = {}
        for engine in ("local", "kubernetes"):
            job = self.write(f"""name: test
framework: shoal
learn: {{algorithm: word2vec, dim: 32, epochs: 2, min_count: 1, deterministic: true, seed: 3}}
data: {{train: {{source: {corpus}, format: text, shard_by: worker}}}}
roles: {{server: 1, worker: 2}}
outputs: {{model: {self.path(engine)}}}
kubernetes: {{volumes: ["host:{self.home}:{self.home}:ro"]}}
""")
            self.shoal("run", "--engine", engine, job)
            with open(self.path(engine + "/vectors.bin"), "rb") as file:
                digests[engine] = file.read()
        self.assertEqual(digests["local"], digests["kubernetes"])
        self.row("word2vec, deterministic, 2 workers + 1 server", "the same bytes as on the local engine")

    def test_exec_and_forward(self):
        job = self.start("run", self.job("while :; do sleep 1000 & wait; done", 1))
        self.assertTrue(until(lambda: pod_of("worker")))
        said = lambda: subprocess.run([SHOAL, "exec", "test", "worker-0", "--", "sh", "-c", "echo $SHOAL_ROLE in $(pwd); exit 7"],
                                      env=self.env, cwd=self.home, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertTrue(until(lambda: said().returncode == 7, 20), said())
        self.assertIn("worker in", said().stdout)
        self.shoal("stop", "test")
        self.finish(job, 130)
        self.row("exec: environment, exit code", "as asked")

    def test_the_controller_is_killed(self):
        job = self.start("run", self.job("sleep 8; echo done", 2))
        self.assertTrue(until(lambda: pod_of("worker", 1)))
        job.send_signal(signal.SIGKILL)
        job.communicate()
        until(lambda: False, 1)
        self.shoal("jobs")
        self.shoal("stop", "test", code=0)
        self.row("the controller is killed with SIGKILL, then `shoal stop`", "found by its labels; nothing left")

    # ---- Faults ----

    def test_a_pod_is_evicted(self):
        job = self.start("run", self.job("[ $SHOAL_ATTEMPT -gt 0 ] && echo again && exit 0; echo first; sleep 1000 & wait", 1))
        self.assertTrue(until(lambda: "first" in self.logs()))
        name = pod_of("worker")["metadata"]["name"]
        kubectl("create", "--raw", f"/api/v1/namespaces/default/pods/{name}/eviction", "-f", "-", text=json.dumps(
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}))
        self.assertIn("again", self.finish(job))
        self.row("a worker's pod evicted", "made again; succeeded")

    def test_a_worker_is_killed(self):
        job = self.start("run", self.job("[ $SHOAL_ATTEMPT -gt 0 ] && echo again && exit 0; echo first; sleep 1000 & wait", 1))
        self.assertTrue(until(lambda: "first" in self.logs()))
        kubectl("delete", "pod", pod_of("worker")["metadata"]["name"], "--grace-period=0", "--force")
        self.assertIn("again", self.finish(job))
        self.row("a worker's pod deleted by force", "made again; succeeded")

    def test_the_coordinator_is_killed(self):
        job = self.start("run", self.job("sleep 25; echo done", 2))
        self.assertTrue(until(lambda: pod_of("worker", 1) and pod_of("coordinator")))
        kubectl("delete", "pod", pod_of("coordinator")["metadata"]["name"], "--grace-period=0", "--force")
        out, _ = job.communicate(timeout=110)
        self.row("the coordinator's pod deleted by force", f"exit code {job.returncode}: {out.strip().splitlines()[-1][:90]}")
        self.assertIn(job.returncode, (0, 1), out)

    def test_the_api_server_is_away(self):
        job = self.start("run", self.job("sleep 15; echo done", 2))
        self.assertTrue(until(lambda: pod_of("worker", 1)))
        subprocess.run([CLUSTER, "apiserver", "stop"], check=True)
        until(lambda: job.poll() is not None, 60 if SLOW else 8)
        subprocess.run([CLUSTER, "apiserver", "start"], check=True)
        out = self.finish(job)
        self.assertIn("done", out)
        self.row(f"API server away for {60 if SLOW else 8} s, watches dropped", "succeeded, with all logs")

    def test_the_launcher_image_is_missing(self):
        job = self.start("run", self.job("true", 1, more="kubernetes: {launcher: 'shoal.test/none:1'}\nlimits: {gather: 20s}\n"))
        out, _ = job.communicate(timeout=110)
        self.assertEqual(job.returncode, 1, out)
        self.row("launcher image missing", out.strip().splitlines()[-1][:120])

    def test_the_quota_is_exceeded(self):
        kubectl("create", "namespace", "small")
        kubectl("-n", "small", "create", "quota", "q", "--hard=pods=2")
        try:
            job = self.start("run", self.job("sleep 3", 4, more="kubernetes: {namespace: small}\nlimits: {gather: 20s}\n"))
            out, _ = job.communicate(timeout=110)
            self.assertEqual(job.returncode, 1, out)
            self.assertTrue(until(lambda: not objects(namespace="small"), 30))
            self.row("quota exceeded", out.strip().splitlines()[-1][:120])
        finally:
            kubectl("delete", "namespace", "small", "--wait=false")

    def test_the_namespace_is_deleted(self):
        kubectl("create", "namespace", "gone")
        until(lambda: kubectl("-n", "gone", "get", "sa", "default", check=False), 20)
        job = self.start("run", self.job("sleep 1000 & wait", 2, more="kubernetes: {namespace: gone}\nlimits: {gather: 30s}\n"))
        self.assertTrue(until(lambda: pod_of("worker", 1, namespace="gone")))
        kubectl("delete", "namespace", "gone", "--wait=false")
        out, _ = job.communicate(timeout=110)
        self.assertEqual(job.returncode, 1, out)
        self.row("namespace deleted under a job", out.strip().splitlines()[-1][:120])

    @slow
    def test_a_node_is_cut_off(self):
        job = self.start("run", self.job("[ $SHOAL_ATTEMPT -gt 0 ] && echo again && exit 0; echo first; sleep 1000 & wait", 1))
        self.assertTrue(until(lambda: "first" in self.logs()))
        coordinator = pod_of("coordinator")["spec"]["nodeName"]
        node = pod_of("worker")["spec"]["nodeName"]
        subprocess.run([CLUSTER, "node", node[-1], "cut"], check=True)
        out, _ = job.communicate(timeout=240)
        subprocess.run([CLUSTER, "node", node[-1], "join"], check=True)
        self.assertTrue(until(lambda: kubectl("get", "nodes").count(" Ready") == 2, 60))
        self.row("a worker's node cut off" + (" (the coordinator's too)" if node == coordinator else ""),
                 f"exit code {job.returncode}: {out.strip().splitlines()[-1][:90]}")

    # ---- Plan ----

    def test_the_plan_is_what_is_sent(self):
        file = self.job("sleep 1000", 1, more="env: {MY_PASSWORD: hush, PLAIN: seen}\n")
        out = self.shoal("plan", file, "--engine", "kubernetes")
        self.assertNotIn("hush", out)
        self.assertIn("delete jobs,services,secrets,pods -l shoal.dev/job=test-ID", out)
        # The cluster takes it as it is printed, but for the uid that only it can give.
        start = out.index("---")
        plain = "\n".join(line for line in out[start:].splitlines() if not line.startswith("#"))
        kubectl("apply", "--dry-run=client", "--validate=false", "-f", "-", text=plain.replace("***", "eA=="))
        self.row("plan --engine kubernetes", "kubectl takes it; no secret in it")


if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if not name.startswith("-")]
    ended = unittest.main(exit=False, verbosity=1, argv=[sys.argv[0], *["KubernetesJobs." + name for name in names]])
    print("jobs that went wrong:", len(ended.result.failures) + len(ended.result.errors))
    width = max([len(row[0]) for row in ROWS] + [1])
    print("\n| what | time | what came of it |\n| --- | --- | --- |")
    for what, seconds, said in ROWS:
        print(f"| {what:{width}} | {seconds} | {said} |")
    sys.exit(0 if ended.result.wasSuccessful() else 1)
