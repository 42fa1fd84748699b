"""Jobs on a real Kubernetes of two nodes, with faults injected while they run. script/test-cluster kubernetes brings it up.

Everything is checked twice: what the command says, and what the cluster has afterwards (nothing).
    kubernetes_test.py [--slow] [NAME…]      slow: nodes are lost, which takes minutes
"""
import base64
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

from cluster_jobs import SHOAL, ClusterJobs, check_near, main, until
from kubectl_comparison import KubectlComparison
from kubernetes_cluster import CLUSTER, HELM, SLOW, Wire, kubectl, last_line, lost_line, objects, pod_of, processes_of, run_documented, slow
from planned_pods import PlannedPods

HERE = os.path.dirname(os.path.abspath(__file__))
CLOCK_SHIM = os.path.join(HERE, "..", "e2e", "clock_shim.c")


class KubernetesJobs(KubectlComparison, PlannedPods, ClusterJobs):
    ENGINE = "kubernetes"
    IMAGE = os.environ.get("SHOAL_TEST_IMAGE", "shoal.test/busybox:1")
    GONE_IN = 30

    def setUp(self):
        super().setUp()
        self.env["KUBECONFIG"] = os.environ.get("SHOAL_TEST_KUBE_USER", "")  # may do what rbac.yaml says; this process may do all

    def left(self):
        return [one["metadata"]["name"] for one in objects()]

    def clear(self):
        kubectl("delete", "jobs,pods,services,secrets", "-l", "shoal.dev/job", "--wait=false", check=False)

    def told(self):
        return self.ask("show", "test").stdout

    # ---- Jobs ----

    def test_a_program_of_an_image(self):
        """busybox alone: no libc, no loader; the launcher has to be static."""
        out = self.shoal("run", self.job("echo here is $SHOAL_INDEX of $SHOAL_ROLE; pwd"))
        self.assertIn("here is 0 of worker", out)
        self.assertIn("here is 1 of worker", out)
        self.row("two programs in a busybox image", "succeeded")

    def test_this_program_in_an_image_of_the_jobs(self):
        """The launcher is elsewhere there than in the coordinator's pod: a parameter server, and a part of the data."""
        corpus = self.corpus()
        out = self.shoal("run", self.write(f"""name: test
image: {self.IMAGE}
data: {{train: {{source: {corpus}, format: text, shard_by: worker}}}}
roles:
  server: {{replicas: 1, command: ["@shoal", ps-server], ports: [ps], follows: worker}}
  worker: {{replicas: 2, command: [sh, -c, "echo read $($SHOAL_PROGRAM data read train --as jsonl | wc -l)"]}}
kubernetes: {{volumes: ["host:{self.home}:{self.home}:ro"]}}
"""))
        with open(corpus, encoding="utf-8") as text:
            lines = len(text.read().splitlines())
        self.assertEqual(sum(map(int, re.findall(r"read (\d+)$", out, re.M))), lines, out)
        self.row("`@shoal` and $SHOAL_PROGRAM in busybox's image", "a parameter server ran, the workers read all data")

    def test_outputs_come_home(self):
        self.shoal("run", self.job("echo result of $SHOAL_INDEX > $SHOAL_OUTPUT/text"))
        found = []
        for folder, _, files in os.walk(self.home):
            found += [open(os.path.join(folder, name)).read() for name in files if name == "text"]
        self.assertEqual(sorted(found), ["result of 0\n", "result of 1\n"])
        self.row("outputs of two pods", "are here when the command ends")

    def test_word2vec_is_the_same_as_locally(self):
        self.check_word2vec(f'kubernetes: {{volumes: ["host:{self.home}:{self.home}:ro"]}}\n')

    def test_a_tensorflow_job(self):
        self.check_tensorflow("kubernetes", "host:")

    def test_exec_and_forward(self):
        job = self.start("run", self.job(self.GREETER, 1))
        self.assertTrue(until(lambda: pod_of("worker")))
        said = lambda: self.ask("exec", "test", "worker-0", "--", "sh", "-c", "echo $SHOAL_ROLE in $(pwd); exit 7", stdin=subprocess.DEVNULL)
        self.assertTrue(until(lambda: said().returncode == 7, 20), said())
        self.assertIn("worker in", said().stdout)
        self.check_exec()
        self.check_forward()
        self.shoal("stop", "test")
        self.finish(job, 130)
        self.row("exec: environment, exit code, 5 MB of input, signals, a terminal and its size; forward", "as asked")

    def test_volumes_and_placement(self):
        os.chmod(self.home, 0o755)
        for name in ("host", "claimed"):
            os.mkdir(self.path(name))
            with open(self.path(name + "/text"), "w") as file:
                file.write(f"from {name}\n")
        self.claim("default", "claimed", self.path("claimed"))
        kubectl("create", "-f", "-", text=json.dumps(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "important"}, "value": 1000}))
        try:
            out = self.shoal("run", self.job(
                "cat /host/text /claimed/text; touch /host/new || echo host is read only; echo written > /claimed/$SHOAL_INDEX; "
                "echo kept > /scratch/x && cat /scratch/x; echo on $SHOAL_NODE", 2, more="kubernetes:\n"
                f"  volumes: ['host:{self.path('host')}:/host:ro', 'pvc:claimed:/claimed', 'empty:10Mi:/scratch']\n"
                "  node_selector: [kubernetes.io/hostname=node2]\n  tolerations: ['gpu:NoSchedule']\n  service_account: default\n"
                "  priority_class: important\n  labels: [team=x]\n"))
            for words in ("from host", "from claimed", "host is read only", "kept", "on node2"):
                self.assertEqual(out.count("| " + words + "\n"), 2, out)
            self.assertTrue(os.path.exists(self.path("claimed/1")))
        finally:
            for kind, name in (("pvc", "claimed"), ("pv", "claimed"), ("priorityclass", "important")):
                kubectl("delete", kind, name, "--wait=false", check=False)
        self.row("volumes (host read only, a claim, empty of a size), node selector, priority class", "as asked")

    def test_affinity_and_security(self):
        """Kubernetes' own words, in a namespace that takes only pods which give up all that `restricted` says."""
        kubectl("create", "namespace", "closed")
        kubectl("label", "namespace", "closed", "pod-security.kubernetes.io/enforce=restricted")
        try:
            self.assertTrue(until(lambda: kubectl("-n", "closed", "get", "sa", "default", check=False), 20))
            out = self.shoal("run", self.job(
                "id; touch /work/x || echo root is read only; grep CapBnd /proc/self/status; echo on $SHOAL_NODE", 2, more="""
kubernetes:
  namespace: closed
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector: {matchLabels: {shoal.dev/job: "{{shoal.job}}", shoal.dev/role: worker}}
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]}]
  topology_spread:
  - {maxSkew: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {shoal.dev/role: worker}}}
  security_context: {runAsNonRoot: true, runAsUser: 1234, runAsGroup: 99, fsGroup: 77}
  container_security_context: {readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
"""))
            for words in ("uid=1234 gid=99", "root is read only", "CapBnd:\t0000000000000000"):
                self.assertEqual(out.count(words), 2, out)
            self.assertEqual(set(re.findall(r"on (node\d)$", out, re.M)), {"node1", "node2"}, out)
            corpus = self.corpus()
            self.claim("closed", "text", self.home)
            self.shoal("run", self.write(f"""name: test
framework: shoal
learn: {{algorithm: word2vec, dim: 8, epochs: 1, min_count: 1}}
data: {{train: {{source: {corpus}, format: text, shard_by: worker}}}}
roles: {{server: 1, worker: 2}}
outputs: {{model: {self.path("model")}}}
kubernetes:
  namespace: closed
  volumes: ["pvc:text:{self.home}:ro"]
  security_context: {{runAsNonRoot: true, runAsUser: 1234}}
  container_security_context: {{readOnlyRootFilesystem: true, capabilities: {{drop: [ALL]}}}}
"""))
            self.assertTrue(os.path.exists(self.path("model/vectors.bin")))
            self.assertTrue(until(lambda: not objects(namespace="closed"), 30))
        finally:
            kubectl("delete", "pv", "text", "--wait=false", check=False)
            kubectl("delete", "namespace", "closed", "--wait=false")
        self.row("affinity, spread, security contexts, in a namespace of Pod Security `restricted`", "as asked; shoal's own trainer too")

    def claim(self, namespace, name, path):
        """A claim of a volume that is this path of the nodes."""
        size = {"storage": "1Gi"}
        kubectl("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
                "capacity": size, "accessModes": ["ReadWriteMany"], "storageClassName": "none", "hostPath": {"path": path}}},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": namespace}, "spec": {
                "accessModes": ["ReadWriteMany"], "storageClassName": "none", "volumeName": name, "resources": {"requests": size}}}]}))

    @unittest.skipUnless(os.environ.get("SHOAL_TEST_NETWORK"), "there is no network file system here; tests/cluster/moosefs.sh -- brings one up")
    def test_data_of_a_network_file_system(self):
        """A claim of a directory on the network, a cache of each node."""
        place = os.path.join(os.environ["SHOAL_TEST_NETWORK"], "data")
        os.mkdir(place)
        self.addCleanup(shutil.rmtree, place)
        for name in "ab":
            shutil.copy(self.corpus(), os.path.join(place, name))
        size = os.path.getsize(os.path.join(place, "a"))
        os.mkdir(self.path("cache"))
        self.claim("default", "far", place)
        job = self.write(f"""name: test
framework: shoal
env: {{SHOAL_CACHE: /cache}}
learn: {{algorithm: word2vec, dim: 8, epochs: 1, min_count: 1}}
data: {{train: {{source: [{place}/a, {place}/b], format: text, shard_by: worker}}}}
roles: {{server: 1, worker: 2}}
outputs: {{model: {self.path("model")}}}
kubernetes: {{volumes: ["pvc:far:{place}:ro", "host:{self.path("cache")}:/cache"]}}
""")
        try:
            for how in ("copied", "kept"):
                done = json.loads(self.shoal("run", "--json", job).strip().splitlines()[-1])
                check_near(self, json.loads(self.ask("show", "--json", done["job"]).stdout)["result"], how, size, (0, 1))
        finally:
            for kind in ("pvc", "pv"):
                kubectl("delete", kind, "far", "--wait=false", check=False)
        self.row("word2vec, data on a claim of MooseFS, a cache on the hosts", "copied once; the second job read the copies")

    def test_a_wrong_word_in_affinity_is_told_here(self):
        out = self.shoal("run", self.job("true", 1, more="kubernetes:\n  affinity: {nodeAfinity: {}}\n"), code=2)
        self.assertIn("kubernetes.affinity: got the unknown field 'nodeAfinity'; did you mean 'nodeAffinity'?", out)
        self.row("a misspelt field of affinity", last_line(out))

    def test_documented_commands(self):
        """As printed; helm by an administrator."""
        self.row("documented commands as printed", f"{len(run_documented(self.IMAGE))}")

    @unittest.skipUnless(HELM, "there is no helm here; tests/cluster/helm_binary.sh builds it")
    def test_the_helm_chart(self):
        """Installed, its account can run a job and nothing else; removed, nothing of it is left."""
        chart = os.path.join(os.environ.get("SHOAL_SOURCE", ""), "deploy/helm/shoal")
        values = ["--namespace", "team", "--set", "priorityClass.create=true,listNodes=true,quota.pods=10,users[0]=ann",
                  "--set-string", "image.repository=shoal.test/launcher,image.tag=1"]
        helm = lambda *words: subprocess.run([HELM, *words], capture_output=True, text=True, check=True, timeout=60).stdout
        kubectl("create", "namespace", "team")
        try:
            rendered = helm("template", "shoal", chart, "--kube-version", "1.33.0", *values)
            kubectl("-n", "team", "apply", "--dry-run=server", "--validate=strict", "-f", "-", text=rendered)
            helm("install", "shoal", chart, *values)
            may = lambda verb, what: kubectl("-n", "team", "auth", "can-i", verb, what, "--as", "system:serviceaccount:team:shoal", check=False).strip()
            self.assertEqual([may("patch", "jobs"), may("watch", "pods"), may("get", "secrets"), may("create", "pods"), may("list", "nodes")],
                             ["yes", "yes", "no", "no", "yes"])
            token = kubectl("-n", "team", "create", "token", "shoal").strip()
            with open(self.env["KUBECONFIG"]) as file:
                config = re.sub(r"user: \{client-certificate-data.*?\}", f"user: {{token: {token}}}", file.read())
            self.env["KUBECONFIG"] = self.write(config, "config")
            del self.env["SHOAL_KUBE_LAUNCHER_IMAGE"]
            image = json.loads(kubectl("-n", "team", "get", "configmap", "shoal", "-o", "json"))["data"]["SHOAL_KUBE_LAUNCHER_IMAGE"]
            out = self.shoal("run", self.job("echo ran", 2, more=f"kubernetes: {{namespace: team, priority_class: shoal, launcher: '{image}'}}\n"))
            self.assertEqual(out.count("| ran"), 2, out)
            helm("uninstall", "shoal", "--namespace", "team")
            self.assertEqual(kubectl("-n", "team", "get", "roles,rolebindings,quota,configmaps", "-l", "app.kubernetes.io/instance=shoal", "-o", "name"), "")
        finally:
            kubectl("delete", "namespace", "team", "--wait=false")
            kubectl("delete", "priorityclass", "shoal", "--wait=false", check=False)
        self.row("the Helm chart: server-side dry run, install, a job as its account, uninstall", "as asked; the account may do no more")

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

    def test_a_node_that_a_rule_excludes_is_left(self):
        rule = "    restart: {backoff: 100ms}\n    on_exit: [{code: 79, action: exclude_host}]\n"
        job = self.start("run", self.job("[ $SHOAL_INDEX.$SHOAL_ATTEMPT = 0.0 ] && exit 79; sleep 8; echo done", 2, resources=rule))
        alone = lambda: [pod for pod in objects("pods") if pod["metadata"]["labels"].get("shoal.dev/index") == "0"
                         and pod["metadata"]["labels"]["shoal.dev/role"] == "worker" and pod["status"].get("phase") == "Running"]
        moved = until(alone)
        out = self.finish(job)
        self.assertTrue(moved, out)
        node = re.search(r"host (\S+) is excluded for role worker: worker 0 exited with 79", out)[1]
        self.assertNotEqual(moved[0]["spec"]["nodeName"], node)
        self.row("exit code that a rule takes for its node's fault", f"left {node}, went on on the other; succeeded")

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

    @contextlib.contextmanager
    def silent_server(self):
        """The API server takes connections and answers none."""
        with open(os.path.join(os.environ["SHOAL_TEST_KUBE"], "run", "apiserver.pid")) as file:
            pid = int(file.read())
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def check_removed(self):
        """What a command left when the server was silent: a later command removes it, one in a minute."""
        self.assertIn("test-", self.ask("doctor").stdout)
        if SLOW:
            self.assertTrue(until(lambda: self.ask("jobs") and not objects(), 90), self.left())
        self.clear()

    def test_ctrl_c_while_the_api_server_is_silent(self):
        job = self.start("run", self.job("echo begun; sleep 1000 & wait", 2))
        self.assertTrue(until(lambda: self.logs().count("begun") == 2))
        with self.silent_server():
            begun = time.monotonic()
            job.send_signal(signal.SIGINT)
            self.assertFalse(until(lambda: job.poll() is not None, 2))  # the workers are asked to save
            job.send_signal(signal.SIGINT)
            out, _ = job.communicate(timeout=60)
            took = time.monotonic() - begun
        self.assertEqual(job.returncode, 130, out)
        self.assertLess(took, 30, out)
        self.assertIn("the next command tries again", out)
        self.check_removed()
        self.row("Ctrl-C while the API server is silent", f"twice: ended after {took:.1f} s; a later command removed the rest")

    # Ends well when it is told to stop, as many programs do: that is no end of its work.
    STOPS_WELL = "trap 'exit 0' TERM; echo attempt $SHOAL_ATTEMPT; sleep 1000 & wait"

    def drain(self, whose):
        job = self.start("run", self.job(self.STOPS_WELL, 2))
        self.assertTrue(until(lambda: self.logs().count("attempt 0") == 2))
        pods = {name: pod_of(*name) for name in (("coordinator", 0), ("worker", 0), ("worker", 1))}
        nodes = {name: pod["spec"]["nodeName"] for name, pod in pods.items()}
        coordinator = nodes["coordinator", 0]
        node = coordinator if whose == "the coordinator's" else next(iter({"node1", "node2"} - {coordinator}))
        moved = [name for name in nodes if nodes[name] == node and name[0] == "worker"]
        self.addCleanup(kubectl, "uncordon", node)
        kubectl("drain", node, "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=50s")
        self.assertEqual([pod["metadata"]["name"] for pod in objects("pods") if pod["spec"].get("nodeName") == node
                          and pod["status"]["phase"] == "Running"], [])
        for name in moved:
            self.assertTrue(until(lambda: f"worker-{name[1]} | attempt 1" in self.ask("logs", "test").stdout, 60), self.logs())
        return job, moved

    def test_a_workers_node_is_drained(self):
        job, moved = self.drain("a worker's")
        self.assertTrue(moved)
        self.check_not_ended(job)
        self.row("a worker's node drained, its program ends with 0 at SIGTERM", "made again on the other, and not counted as an end")

    def test_the_coordinators_node_is_drained(self):
        job, moved = self.drain("the coordinator's")
        self.check_not_ended(job)
        self.row("the coordinator's node drained", f"made again on the other, with {len(moved)} workers; the job went on")

    def check_not_ended(self, job):
        """A drained node is no reason to end: who was not on it goes on, until it is stopped."""
        self.assertIsNone(job.poll())
        self.shoal("stop", "test")
        self.finish(job, 130)

    def test_the_launcher_image_is_missing(self):
        job = self.start("run", self.job("true", 1, more="kubernetes: {launcher: 'shoal.test/none:1'}\nlimits: {gather: 20s}\n"))
        out, _ = job.communicate(timeout=110)
        self.assertEqual(job.returncode, 1, out)
        self.assertIn("the image shoal.test/none:1 cannot be had", last_line(out))
        self.row("launcher image missing", last_line(out))

    def test_an_image_cannot_be_pulled(self):
        """The program's, of a registry where nobody listens: its words when the pod's status has them, the end after limits.gather."""
        begun = time.monotonic()
        job = self.start("run", "--set", "image=127.0.0.1:1/none:1", self.job("true", 1, more="limits: {gather: 40s}\n"))
        said, told = "", 0.0
        for line in job.stdout:
            said += line
            if not told and "waits: the image 127.0.0.1:1/none:1 cannot be had (ErrImagePull: " in line:
                told = time.monotonic() - begun
        self.assertEqual(job.wait(30), 1, said)
        ended = time.monotonic() - begun
        self.assertTrue(0 < told < ended - 10, (told, ended, said))
        self.assertIn("connection refused", said)
        self.row("image missing, limits.gather 40 s", f"told after {told:.1f} s, ended after {ended:.1f} s: {last_line(said)}")

    def test_the_quota_is_exceeded(self):
        kubectl("create", "namespace", "small")
        kubectl("-n", "small", "create", "quota", "q", "--hard=pods=2")
        try:
            job = self.start("run", self.job("sleep 3", 4, more="kubernetes: {namespace: small}\nlimits: {gather: 20s}\n"))
            out, _ = job.communicate(timeout=110)
            self.assertEqual(job.returncode, 1, out)
            self.assertTrue(until(lambda: not objects(namespace="small"), 30))
            self.assertIn("quota", last_line(out))
            self.row("quota exceeded", last_line(out))
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
        self.assertIn("its objects were removed from the cluster, with their namespace gone", out)
        self.row("namespace deleted under a job", last_line(out))

    def test_the_watch_is_dropped(self):
        """All its connections break, again and again: it watches on from where it was, and the logs go on where they were."""
        with Wire() as wire:
            with open(self.env["KUBECONFIG"]) as file:
                self.env["KUBECONFIG"] = self.write(file.read().replace("10.99.0.1:6443", f"127.0.0.1:{wire.port}"), "config")
            job = self.start("run", self.job("for i in $(seq 80); do echo line $i; sleep 0.1; done", 2))
            self.assertTrue(until(lambda: self.logs().count("line 1\n") == 2))
            for _ in range(3):
                self.assertGreater(wire.cut(), 0)
                until(lambda: job.poll() is not None, 2)
            out = self.finish(job)
        for i in range(1, 81):
            self.assertEqual(out.count(f"| line {i}\n"), 2, out)
        self.row("its connections to the API server broken, three times", "succeeded; every line once")

    def test_credentials_expire_during_a_job(self):
        """An exec plugin whose certificates are good for some seconds: it is asked again and again, the job sees nothing of it."""
        with open(self.env["KUBECONFIG"]) as file:
            text = file.read()
        data = dict(re.findall(r"client-(certificate|key)-data: ([A-Za-z0-9+/=]+)", text))
        pem = {name: base64.b64decode(value).decode() for name, value in data.items()}
        answer = json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {
            "clientCertificateData": pem["certificate"], "clientKeyData": pem["key"], "expirationTimestamp": "WHEN"}})
        plugin = self.write("#!/bin/sh\necho asked >> " + self.path("asked") + "\nsed s/WHEN/$(date -u -d '15 seconds' +%Y-%m-%dT%H:%M:%SZ)/ <<'END'\n"
                            + answer + "\nEND\n", "plugin")
        os.chmod(plugin, 0o755)
        users = "users: [{name: user, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: " + plugin + "}}}]\n"
        with Wire() as wire:  # connections break, so that it has to show who it is
            self.env["KUBECONFIG"] = self.write(re.sub(r"users: .*\n", users, text).replace("10.99.0.1:6443", f"127.0.0.1:{wire.port}"), "config")
            job = self.start("run", self.job("for i in $(seq 20); do echo line $i; sleep 1; done", 2))
            self.assertTrue(until(lambda: self.logs().count("line 1\n") == 2))
            for _ in range(3):
                until(lambda: job.poll() is not None, 5.5)
                wire.cut()
            out = self.finish(job)
        self.assertEqual(out.count("| line 20\n"), 2, out)
        with open(self.path("asked")) as file:
            asked = len(file.readlines())
        self.assertGreaterEqual(asked, 4)
        self.row("an exec plugin's certificates, good for 15 s", f"asked {asked} times; succeeded")

    def lose_node(self, lose, whose, find):
        """A node with a task is lost until the job has ended; afterwards nothing of the job is left on it. (What was said, exit code)."""
        job = self.start("run", self.job("echo attempt $SHOAL_ATTEMPT; [ $SHOAL_ATTEMPT -gt 0 ] && exit 0; sleep 110", 2))
        self.assertTrue(until(lambda: self.logs().count("attempt 0") == 2))
        coordinator = pod_of("coordinator")["spec"]["nodeName"]
        worker = next(pod for pod in (pod_of("worker", 0), pod_of("worker", 1)) if pod["spec"]["nodeName"] != coordinator)
        node = worker["spec"]["nodeName"] if whose == "a worker's" else coordinator
        self.addCleanup(self.find_again, node, find)
        lose(node)
        out, _ = job.communicate(timeout=300)
        self.find_again(node, find)
        self.assertTrue(until(lambda: not processes_of("test-"), 60), processes_of("test-"))
        return out, job.returncode

    def find_again(self, node, find):
        find(node)
        self.assertTrue(until(lambda: kubectl("get", "nodes").count(" Ready") == 2, 90), kubectl("get", "nodes"))

    def cut(self, node):
        subprocess.run([CLUSTER, "node", node[-1], "cut"], check=True)

    def join(self, node):
        subprocess.run([CLUSTER, "node", node[-1], "join"], check=True)

    def delete(self, node):
        subprocess.run([CLUSTER, "node", node[-1], "stop"], check=True)
        kubectl("delete", "node", node)

    def begin(self, node):
        if node not in kubectl("get", "nodes"):
            subprocess.run([CLUSTER, "node", node[-1], "start"], check=True)

    @slow
    def test_a_workers_node_is_cut_off(self):
        out, code = self.lose_node(self.cut, "a worker's", self.join)
        self.assertEqual(code, 0, out)
        self.assertIn("attempt 1", out)
        self.row("a worker's node cut off", "made again on the other; succeeded: " + lost_line(out))

    @slow
    def test_the_coordinators_node_is_cut_off(self):
        out, code = self.lose_node(self.cut, "the coordinator's", self.join)
        self.assertEqual(code, 0, out)
        self.row("the coordinator's node cut off", "made again on the other; succeeded: " + lost_line(out))

    @slow
    def test_a_node_is_deleted(self):
        out, code = self.lose_node(self.delete, "a worker's", self.begin)
        self.assertEqual(code, 0, out)
        self.row("a worker's node deleted, its kubelet dead", "made again on the other; succeeded: " + lost_line(out))

    def set_clock(self, seconds):
        """Of the command, by so much."""
        shim = self.path("clock.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, CLOCK_SHIM], check=True)
        self.env.update(LD_PRELOAD=shim, CLOCK_OFF_BY=str(seconds))

    def test_the_clock_is_five_minutes_off(self):
        self.set_clock(300)
        out = self.shoal("run", self.job("[ $SHOAL_ATTEMPT -gt 0 ] && echo again && exit 0; sleep 1; kill -9 $$", 2))
        self.assertEqual(out.count("| again"), 2, out)
        self.row("this machine's clock 5 minutes ahead of the cluster's", "restarted as it should; succeeded")

    def test_the_clock_is_before_the_certificate(self):
        self.set_clock(-86400)
        out = self.shoal("run", self.job("true", 1), code=1)
        self.assertIn("is this machine's clock right?", out)
        self.row("this machine's clock a day behind, before the server's certificate", last_line(out))

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
    sys.exit(main(KubernetesJobs))
