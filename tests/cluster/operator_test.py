"""`shoal server --operator` on a real Kubernetes: ShoalJobs by kubectl alone, with the server killed meanwhile.
script/test-cluster kubernetes brings the cluster up and runs this after kubernetes_test.py.
    operator_test.py [NAME…]
"""
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

from cluster_jobs import ROWS, SHOAL, SOURCE, main, until
from kubernetes_cluster import HELM, kubectl, objects, processes_of

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e", "documents"))
import places  # noqa: E402
import sandbox  # noqa: E402

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
        return self.serve_words([SHOAL, "server", "--json", "--state", os.path.join(self.home.name, state), "--listen", "127.0.0.1:0",
                                 "--operator", "--operator-team", f"{self.namespace}=default", *options])

    def serve_words(self, words):
        with open(os.path.join(self.home.name, "server.log"), "ab") as log:
            process = subprocess.Popen(words, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        line = process.stdout.readline()
        self.assertTrue(line, self.said())
        self.addCleanup(process.stdout.close)
        self.server = process
        self.url = json.loads(line)["url"]
        return process

    def said(self):
        with open(os.path.join(self.home.name, "server.log"), encoding="utf-8") as file:
            return file.read()

    def ask(self, method, path, body=None):
        """Status and document of a request by the administrator."""
        with open(os.path.join(self.home.name, "state", "administrator.token"), encoding="utf-8") as file:
            token = file.read().strip()
        asked = urllib.request.Request(self.url + path, None if body is None else json.dumps(body).encode(), method=method,
                                       headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=30) as reply:
            return reply.status, json.loads(reply.read() or b"{}")

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
        if not until(lambda: self.status(name).get("phase") in phases, seconds):
            self.fail(f"{self.status(name)}\n{self.said()}\n{self.kube('get', 'jobs,pods,events', check=False)}")
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
        record = self.ask("GET", f"/api/v1/jobs/{status['job']}")[1]
        self.assertEqual((record["user"], record["team"], record["engine"]), ("shoal-operator", "default", "kubernetes"))
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
        jobs = self.ask("GET", "/api/v1/jobs")[1]["items"]
        self.assertEqual([job["id"] for job in jobs], [status["job"]])
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

    @unittest.skipUnless(HELM, "there is no helm here; tests/cluster/helm_binary.sh builds it")
    def test_the_chart(self):
        """The server in a pod of the cluster, as an ordinary user on a read-only root, with the chart's rights alone."""
        self.import_image("shoal.test/shoal:1")
        place = self.namespace + "-s"
        kubectl("create", "namespace", place)
        self.addCleanup(kubectl, "delete", "namespace", place, "--wait=false", check=False)
        # There is no kube-proxy here, so the API server's address is given, and no class of storage.
        values = ("image.repository=shoal.test/shoal,persistence.enabled=false,crd.create=false,env.KUBERNETES_SERVICE_HOST=10.99.0.1,"
                  "networkPolicy.from[0].namespaceSelector.matchLabels.team=red")
        subprocess.run([HELM, "install", "own", os.path.join(SOURCE, "deploy/helm/shoal-server"), "--namespace", place, "--set", values,
                        "--set-string", "image.tag=1,env.KUBERNETES_SERVICE_PORT=6443"], check=True, capture_output=True, timeout=60)
        pod = lambda: kubectl("-n", place, "get", "pods", "-o", "wide", check=False) + kubectl("-n", place, "logs", "own-0", check=False)
        ready = lambda: kubectl("-n", place, "get", "pod", "own-0", "-o", "jsonpath={.status.containerStatuses[0].ready}", check=False) == "true"
        self.assertTrue(until(ready, 90), pod() + kubectl("-n", place, "describe", "pod", "own-0", check=False))
        self.apply("echo by the chart")
        self.assertTrue(until(lambda: self.status().get("phase") == "Succeeded", 90), f"{self.status()}\n{pod()}")
        self.assertIn("administrator's token", kubectl("-n", place, "logs", "own-0"))
        self.await_nothing_left()
        subprocess.run([HELM, "uninstall", "own", "--namespace", place], check=True, capture_output=True, timeout=60)
        self.assertIn("shoaljobs.shoal.dev", kubectl("get", "crd", "-o", "name"))
        self.row("the chart of the server: install, a ShoalJob, uninstall", "ready; Succeeded")

    def import_image(self, name):
        """Of the binaries that are tested, with the libraries that they link, on both nodes."""
        linked = subprocess.run(["ldd", SHOAL], capture_output=True, text=True, check=True).stdout
        libraries = re.findall(r"(/\S+) \(0x", linked)
        parts = [f"{SHOAL}=/bin/shoal", f"{os.environ.get('SHOAL_LAUNCHER', SHOAL + '-task')}=/shoal-task", *(f"{path}={path}" for path in libraries)]
        archive = os.path.join(self.home.name, "image.tar")
        here = os.path.dirname(os.path.abspath(__file__))
        subprocess.run([sys.executable, "-B", os.path.join(here, "make_image.py"), archive, name, *parts], check=True)
        for node in ("node1", "node2"):
            subprocess.run(["ctr", "-a", os.path.join(os.environ["SHOAL_TEST_KUBE"], node, "containerd.sock"), "-n", "k8s.io", "images", "import", archive],
                           check=True, capture_output=True)
        os.unlink(archive)

    def test_documented_commands(self):
        """As printed; helm and the definition by an administrator."""
        box = sandbox.Sandbox(files={})
        self.addCleanup(box.close)
        found = {command.text for _, commands in places.commands(SOURCE, box, "operator") for command in commands}
        self.assertEqual(len(found), 6)
        self.serve()
        for team in ("red", "blue"):
            self.assertEqual(self.ask("POST", "/api/v1/teams", {"name": team})[0], 201)
        self.kill()
        for text in sorted(found):
            with self.subTest(command=text):
                self.run_documented(text)
        self.row("documented commands as printed", f"{len(found)}")

    def run_documented(self, text):
        words = shlex.split(text)
        if words[0] == "shoal":
            process = self.serve_words([SHOAL, *words[1:], "--json", "--state", os.path.join(self.home.name, "state"), "--listen", "127.0.0.1:0"])
            process.terminate()
            self.assertEqual(process.wait(30), 0, self.said())
        elif words[0] == "helm":
            if not HELM:
                return
            done = subprocess.run([HELM, *words[1:], "--set", "crd.create=false"], cwd=SOURCE, capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            subprocess.run([HELM, "uninstall", "shoal", "--namespace", "shoal"], check=True, capture_output=True, timeout=60)
            kubectl("delete", "namespace", "shoal", "--wait=false")
        else:
            self.apply("true", name="left")  # without a server
            words = [{"NAMESPACE": self.namespace, "NAME": "left"}.get(word, word) for word in words]
            subprocess.run(words, cwd=SOURCE, check=True, capture_output=True, timeout=60)

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


    def test_a_separate_network(self):
        """The objects; this cluster's network plug-in does not enforce them."""
        self.serve()
        self.assertEqual(self.ask("PUT", "/api/v1/teams/default/policy", {"separate_network": True})[0], 200)
        self.apply("sleep 1000", replicas=1)
        self.await_phase("Running")
        policies = json.loads(self.kube("get", "networkpolicies", "-o", "json"))["items"]
        self.assertEqual(len(policies), 2)
        self.assertEqual(policies[0]["spec"]["ingress"], [{"from": [{"podSelector": {"matchLabels": {"shoal.dev/team": "default"}}}]}])
        pods = objects("pods", self.namespace)
        self.assertEqual({pod["metadata"]["labels"].get("shoal.dev/team") for pod in pods}, {"default"})
        text = self.manifest("true", name="spoof", replicas=1) + "    kubernetes: {labels: [shoal.dev/team=red]}\n"
        kubectl("apply", "-f", "-", text=text)
        self.assertIn("which the server sets", self.await_phase("Refused", name="spoof")["reason"])
        self.kube("delete", "shoaljob", "test", "--timeout=60s")
        self.assertTrue(until(lambda: not json.loads(self.kube("get", "networkpolicies", "-o", "json"))["items"], 30))
        self.row("a team whose network is separate", "two NetworkPolicies, removed with the job; another team's label is refused")


if __name__ == "__main__":
    sys.exit(main(OperatorJobs))
