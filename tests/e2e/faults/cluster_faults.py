"""What the fault suite does to a job of a cluster beside signals to its processes: pods that are deleted or evicted, a kubelet that
stands still, an API server that is away. Only on `--engine kubernetes`."""
import json
import os
import signal
import subprocess
import threading

from disturbances import FULL_SECONDS, Disturbance, fill, switch_on

# A cluster is one for all runs that go on at once.
_cluster = threading.Lock()


def kubectl(*arguments, text=None):
    """What it says on both outputs; ProcessLookupError where what it names is not there any more."""
    done = subprocess.run(["kubectl", *arguments], input=text, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise ProcessLookupError(done.stderr.strip())
    return done.stdout


class OnPod(Disturbance):
    """A pod of the job, of any role, is taken away."""
    must_succeed = True

    def targets(self, _process):
        jobs = [os.path.basename(d) for d in self.home.job_dirs()]
        pods = self.home.engine.objects("pods", jobs) if jobs else []
        return sorted((pod["metadata"]["name"], pod["metadata"]["labels"]["shoal.dev/role"]) for pod in pods
                      if "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") in ("Pending", "Running"))

    def strike(self, target):
        name, _role = target
        self.take(name)
        self.landed = f"{self.victim} {name}"

    def take(self, name):
        raise NotImplementedError


class PodDeleted(OnPod):
    """By `kubectl delete pod`, at once or with its time to end."""

    def take(self, name):
        force = ["--grace-period=0", "--force"] if self.rng.random() < 0.5 else []
        kubectl("delete", "pod", name, "--wait=false", *force)


class PodEvicted(OnPod):
    """By the API of evictions, as a drain does it."""

    def take(self, name):
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
        kubectl("create", "--raw", f"/api/v1/namespaces/default/pods/{name}/eviction", "-f", "-", text=json.dumps(eviction))


class OnCluster(Disturbance):
    """The cluster itself does not act for a while. Other runs on it see that too."""
    must_succeed = True
    extra_seconds = 60

    @staticmethod
    def pid(name):
        with open(os.path.join(os.environ["SHOAL_TEST_KUBE"], "run", name + ".pid"), encoding="ascii") as f:
            return int(f.read())

    @staticmethod
    def cluster(*words):
        subprocess.run([os.path.join(os.environ["SHOAL_TEST_KUBE"], "cluster"), *words], check=True)

    def freeze(self, name, seconds):
        self.landed = f"{name} for {seconds:.1f} s"
        pid = self.pid(name)
        os.kill(pid, signal.SIGSTOP)
        try:
            threading.Event().wait(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)


class KubeletFrozen(OnCluster):
    """The kubelet of one of both nodes, for up to 25 s: its node is NotReady from 16 s on, and would lose its pods after 46."""

    def strike(self, _target):
        with _cluster:
            self.freeze(f"kubelet-{self.rng.choice((1, 2))}", self.rng.uniform(1, 25))


class ApiServerAway(OnCluster):
    """It is killed and started again after up to 8 s, or takes connections and does not answer for as long."""

    def strike(self, _target):
        seconds = self.rng.uniform(0.5, 8)
        with _cluster:
            if self.rng.random() < 0.5:
                self.freeze("apiserver", seconds)
                return
            self.landed = f"apiserver killed, for {seconds:.1f} s"
            self.cluster("apiserver", "stop")
            threading.Event().wait(seconds)
            self.cluster("apiserver", "start")


class NodeDiskFull(OnCluster):
    """The disk of one of both nodes has no room for 0.4 s: the directories of its pods."""

    def strike(self, _target):
        node = self.rng.choice((1, 2))
        with _cluster:
            fill(os.path.join(os.environ["SHOAL_TEST_KUBE"], f"node{node}", "root"), FULL_SECONDS)
        self.landed = f"the disk of node{node}"


class PodIoError(OnPod):
    """Calls on files of a pod's directories fail with EIO or ENOSPC, once or for 0.4 s."""
    must_succeed = False
    extra_seconds = 20
    true_words = ("input/output error", "i/o error", "no space left")
    CALLS = ("open", "read", "write", "sync", "rename", "any", "any")

    def targets(self, _process):
        jobs = [os.path.basename(d) for d in self.home.job_dirs()]
        pods = self.home.engine.objects("pods", jobs) if jobs else []
        return sorted((pod["metadata"]["name"], pod["spec"]["nodeName"], pod["metadata"]["uid"]) for pod in pods
                      if pod["status"].get("phase") in ("Pending", "Running") and pod["spec"].get("nodeName"))

    def strike(self, target):
        name, node, uid = target
        place = os.path.join(os.environ["SHOAL_TEST_KUBE"], node)
        pod = os.path.join(place, "root", "pods", uid)
        error = self.rng.choice(("EIO", "ENOSPC"))
        self.must_succeed = error == "ENOSPC"
        order = f"any {self.rng.choice(self.CALLS)} {self.rng.choice(('once', 'all'))} {pod}/ {error}\n"
        with _cluster:
            hits = switch_on(os.path.join(place, "faults"), order, lambda: not os.path.exists(pod))
        self.landed = f"{name}: {order.strip()}: {len(hits)} calls failed, {'; '.join(hit.replace(place, '') for hit in hits[:6])}"


class SpoolFull(Disturbance):
    """The spool directory of a node's slurmd has no room for 0.4 s."""
    must_succeed = True
    extra_seconds = 60

    def strike(self, _target):
        node = self.rng.choice(("n1", "n2", "n3"))
        with _cluster:
            fill(os.path.join(os.environ["SHOAL_TEST_SLURM"], "spool-" + node), FULL_SECONDS)
        self.landed = f"the spool of {node}"


OF_KUBERNETES = {"pod-deleted": PodDeleted, "pod-evicted": PodEvicted, "kubelet-frozen": KubeletFrozen, "api-away": ApiServerAway,
                 "node-disk-full": NodeDiskFull, "pod-io-error": PodIoError}
OF_SLURM = {"spool-full": SpoolFull}
OF_DISKS = ("node-disk-full", "pod-io-error", "spool-full")


def disks_are_small():
    """Whether this cluster's nodes have disks for such faults (SHOAL_TEST_KUBE_DISK, SHOAL_TEST_SLURM_DISK)."""
    return any(os.path.ismount(os.path.join(os.environ.get(name, "/"), place)) for name, place in (
        ("SHOAL_TEST_KUBE", "node1/root/pods"), ("SHOAL_TEST_SLURM", "spool-n1")))


CLASSES = {**OF_KUBERNETES, **OF_SLURM}
