"""`shoal server --operator` on a real Kubernetes: ShoalJobs by kubectl alone, with the server killed meanwhile.
script/test-cluster kubernetes brings the cluster up and runs this after kubernetes_test.py.
    operator_test.py [NAME…]
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from cluster_jobs import ROWS, SHOAL, SOURCE, main, until
from kubernetes_cluster import kubectl, objects, processes_of

DEFINITION = os.path.join(SOURCE, "deploy/helm/shoal-server/files/shoaljob.yaml")
IMAGE = os.environ.get("SHOAL_TEST_IMAGE", "shoal.test/busybox:1")


class OperatorJobs(unittest.TestCase):
    """Each test has a namespace and a server of its own. The server may do what deploy/kubernetes says."""

    @classmethod
    def setUpClass(cls):
        kubectl("apply", "--server-side", "-f", DEFINITION)
        kubectl("wait", "--for=condition=Established", "crd/shoaljobs.shoal.dev", "--timeout=30s")

    def setUp(self):
        self.begun = time.monotonic()
        self.home = tempfile.TemporaryDirectory(prefix="shoal-operator-test.")
        self.addCleanup(self.home.cleanup)
        self.namespace = "t" + os.path.basename(self.home.name).rsplit(".", 1)[1].lower().replace("_", "x")
        kubectl("create", "namespace", self.namespace)
        self.addCleanup(kubectl, "delete", "namespace", self.namespace, "--wait=false", check=False)
        self.env = dict(os.environ, SHOAL_HOME=self.home.name, KUBECONFIG=os.environ["SHOAL_TEST_KUBE_USER"], SHOAL_LOG="warning")
        self.server = None
        self.addCleanup(self.kill)

    def row(self, what, said):
        ROWS.append((what, f"{time.monotonic() - self.begun:.1f} s", said))

    # ---- The server ----

    def serve(self, *options, state="state"):
        """Until it is ready."""
        log = open(os.path.join(self.home.name, "server.log"), "ab")  # pylint: disable=consider-using-with
        process = subprocess.Popen(
            [SHOAL, "server", "--json", "--state", os.path.join(self.home.name, state), "--listen", "127.0.0.1:0", "--operator",
             "--operator-team", f"{self.namespace}=default", *options],
            env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        log.close()
        line = process.stdout.readline()
        self.assertTrue(line, self.said())
        self.addCleanup(process.stdout.close)
        self.server = process
        self.url = json.loads(line)["url"]
        return process

    def said(self):
        with open(os.path.join(self.home.name, "server.log"), encoding="utf-8") as file:
            return file.read()

    def kill(self, process=None):
        process = process or self.server
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def shoal(self, *arguments):
        """A command over the server, as its administrator."""
        token = os.path.join(self.home.name, "state", "administrator.token")
        env = dict(self.env, SHOAL_SERVER=self.url)
        with open(token, encoding="utf-8") as file:
            env["SHOAL_TOKEN"] = file.read().strip()
        return subprocess.run([SHOAL, *arguments], env=env, capture_output=True, text=True, check=False, timeout=60)

    # ---- Objects ----

    def manifest(self, script, name="test", replicas=2, more="", spec=""):
        return (f"apiVersion: shoal.dev/v1\nkind: ShoalJob\nmetadata: {{name: {name}, namespace: {self.namespace}}}\nspec:\n{spec}  job:\n"
                f"    image: {IMAGE}\n    roles:\n      worker: {{replicas: {replicas}, command: [sh, -c, {json.dumps(script)}]{more}}}\n")

    def apply(self, *arguments, **options):
        kubectl("apply", "-f", "-", text=self.manifest(*arguments, **options))

    def kube(self, *arguments, check=True):
        return kubectl("-n", self.namespace, *arguments, check=check)

    def status(self, name="test"):
        text = self.kube("get", "shoaljob", name, "-o", "json", check=False)
        return json.loads(text).get("status", {}) if text else {}

    def condition(self, kind, name="test"):
        return next((one for one in self.status(name).get("conditions", []) if one["type"] == kind), {})

    def await_phase(self, *phases, name="test", seconds=60):
        self.assertTrue(until(lambda: self.status(name).get("phase") in phases, seconds), f"{self.status(name)}\n{self.said()}")
        return self.status(name)

    def await_nothing_left(self, seconds=40):
        left = lambda: objects(namespace=self.namespace)
        self.assertTrue(until(lambda: not left(), seconds), [one["metadata"]["name"] for one in left()])

    # ---- Tests ----

    def test_applied_it_runs_and_says_so(self):
        self.serve()
        self.apply("echo hello from $SHOAL_INDEX")
        self.kube("wait", "--for=condition=Complete", "shoaljob/test", "--timeout=60s")
        status = self.await_phase("Succeeded")
        self.assertEqual((status["tasks"]["total"], status["tasks"]["succeeded"], status["tasks"]["failed"]), (2, 2, 0))
        self.assertEqual(status["observedGeneration"], 1)
        shown = self.kube("get", "shoaljobs")
        self.assertRegex(shown, r"NAME +PHASE +WORKERS +AGE +REASON\ntest +Succeeded +0/2 +\d+s")
        described = self.kube("describe", "shoaljob", "test")
        self.assertIn("Succeeded", described[described.index("Events:"):])
        # Everything that other submissions have.
        self.assertIn("hello from 1", self.shoal("logs", status["job"]).stdout)
        self.assertIn("shoal-operator", self.shoal("show", status["job"]).stdout + self.shoal("jobs", "--json").stdout)
        self.await_nothing_left()
        self.kube("delete", "shoaljob", "test", "--timeout=20s")
        self.row("kubectl apply, wait, get, describe, delete", "Succeeded; nothing left")

    def test_deleted_while_it_runs(self):
        self.serve()
        self.apply("sleep 1000")
        status = self.await_phase("Running")
        self.kube("delete", "shoaljob", "test", "--timeout=60s")
        self.assertEqual(objects(namespace=self.namespace), [])  # it is gone when all of it is
        self.assertEqual(processes_of(status["job"]), [])
        self.assertIn("its ShoalJob was deleted", self.shoal("show", status["job"]).stdout)
        self.row("kubectl delete of a running job", "gone when no pod and no process is left")

    def test_the_server_is_killed_and_the_job_ends_once(self):
        first = self.serve()
        self.apply("echo begun; sleep 12; echo ended")
        status = self.await_phase("Running")
        self.kill(first)
        until(lambda: False, 1)
        self.serve()
        again = self.await_phase("Succeeded")
        self.assertEqual(again["job"], status["job"])
        jobs = json.loads(self.shoal("jobs", "--json").stdout)
        jobs = jobs.get("jobs", jobs) if isinstance(jobs, dict) else jobs
        self.assertEqual(len(jobs), 1, jobs)
        log = self.shoal("logs", status["job"]).stdout
        self.assertEqual((log.count("begun"), log.count("ended")), (2, 2), log)
        self.await_nothing_left()
        self.row("kill -9 of the server while the job runs", "the next one attaches it; ended once")

    def test_the_server_is_killed_around_the_submission(self):
        """At several times after the object appears: one job, whatever was done before."""
        for i in range(6):
            name = f"early-{i}"
            first = self.serve()
            self.apply("true", name=name, replicas=1)
            until(lambda: False, 0.06 * i)
            self.kill(first)
            self.serve()
            self.await_phase("Succeeded", name=name)
            jobs = [line for line in self.shoal("jobs").stdout.splitlines() if re.match(rf"{name}-", line)]
            self.assertEqual(len(jobs), 1, jobs)
            self.kill()
        self.row("kill -9 of the server around the submission, 6 times", "one job each")

    def test_a_bad_spec(self):
        self.serve()
        wrong = subprocess.run(["kubectl", "apply", "-f", "-"], input=self.manifest("true", replicas=-1), capture_output=True, text=True, check=False)
        self.assertIn("spec.job.roles.worker.replicas", wrong.stderr)  # by the API server itself
        self.apply("true", more=", follows: nobody")
        status = self.await_phase("Refused")
        self.assertIn("spec.job.roles.worker.follows", status["reason"])
        accepted = self.condition("Accepted")
        self.assertEqual((accepted["status"], accepted["reason"]), ("False", "InvalidJob"))
        self.assertIn("Refused", self.kube("describe", "shoaljob", "test"))
        self.apply("true")  # corrected: it runs
        self.await_phase("Succeeded")
        self.row("a spec that only the server can refuse", status["reason"][:120])

    def test_changes_after_the_submission(self):
        self.serve()
        self.apply("trap 'exit 0' TERM; sleep 1000 & wait", replicas=1, more=", min: 1, max: 3")
        self.await_phase("Running")
        self.apply("trap 'exit 0' TERM; sleep 1000 & wait", replicas=3, more=", min: 1, max: 3")
        self.assertTrue(until(lambda: self.status().get("tasks", {}).get("running") == 3), f"{self.status()}\n{self.said()}")
        self.assertEqual(self.status()["observedGeneration"], 2)
        self.apply("echo something else", replicas=3, more=", min: 1, max: 3")
        self.assertTrue(until(lambda: self.condition("SpecApplied").get("reason") == "Immutable"), self.status())
        self.assertIn("delete this object", self.condition("SpecApplied")["message"])
        self.assertEqual(self.status()["phase"], "Running")
        self.apply("trap 'exit 0' TERM; sleep 1000 & wait", replicas=9, more=", min: 1, max: 3")
        self.assertTrue(until(lambda: self.condition("SpecApplied").get("reason") in ("Immutable", "ChangeRefused")))
        self.kube("delete", "shoaljob", "test", "--timeout=60s")
        self.row("replicas scaled by kubectl apply; a command changed after the submission", "scaled; a condition says so")

    def test_an_unknown_namespace_and_hostile_fields(self):
        self.serve()
        self.apply("true", name="elsewhere", replicas=1)
        text = self.manifest("true", name="breakout", replicas=1) + "    kubernetes: {namespace: kube-system}\n"
        kubectl("apply", "-f", "-", text=text)
        status = self.await_phase("Refused", name="breakout")
        self.assertIn("runs in its own namespace", status["reason"])
        self.await_phase("Succeeded", name="elsewhere")
        long = "a" * 200 + ".b"
        self.apply("true", name=long, replicas=1)
        self.await_phase("Succeeded", name=long)
        self.row("a job that names another namespace; a name of 202 characters", "refused; runs")

    def test_two_servers(self):
        first = self.serve(state="one")
        self.apply("true", name="first", replicas=1)
        owner = self.await_phase("Succeeded", name="first")["server"]
        second = self.serve(state="state")
        self.apply("true", name="second", replicas=1)
        self.assertEqual(self.await_phase("Succeeded", name="second")["server"], owner)
        first.send_signal(signal.SIGTERM)
        first.wait(30)
        self.apply("true", name="third", replicas=1)
        self.assertNotEqual(self.await_phase("Succeeded", name="third")["server"], owner)
        self.kill(second)
        self.row("two servers with stores of their own", "one acts; the other after its end")


if __name__ == "__main__":
    sys.exit(main(OperatorJobs))
