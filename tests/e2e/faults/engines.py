"""The engines on which the fault suite runs its jobs: what their job files need, how their processes are recognized, and what a
job may leave on them. The clusters are those of script/test-cluster, whose scripts set the variables that are read here."""
import contextlib
import json
import os
import subprocess
import sys

import harness

CLUSTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cluster")


def image_of(kind):
    """The line of a job file: Shoal's own trainers need none."""
    return "" if kind == "word2vec" else f"image: {os.environ['SHOAL_TEST_IMAGE']}\n"


def mounted(folder):
    """Directories of this machine in the containers of a job: Python and numpy with its libraries, the suite, the module under test."""
    return ("/usr", "/etc/alternatives", folder, harness.SOURCE, os.path.join(os.path.dirname(os.path.abspath(harness.DEFAULT_BINARY)), "python"))


class Engine:
    """The local engine, and what the others have in common with it."""
    name = "local"
    variables = ()         # of SHOAL_… that commands need
    session = "setsid"     # how a program of the job starts one in a session of its own
    gather = 20.0          # limits.gather, seconds
    deadline = 240.0       # limits.deadline
    coordinator_timeout = 10.0
    arrival = 0.3          # seconds in which a job's tasks start: a quarter of the faults falls into them
    extra_seconds = 0      # how much longer than locally a job may take after a fault
    gone_in = 0.5          # seconds in which what is left of a job goes
    checkpoints = True
    shares_files = True    # the job's directory is that of its coordinator

    def home(self, binary):
        return harness.Home(binary) if self.name == "local" else ClusterHome(self, binary)

    def job_lines(self, _kind, _folder):
        """Lines of a file of this kind of job that reads files of this folder."""
        return ""

    def left(self, _job_ids):
        """Sentences: what the cluster still has of these jobs."""
        return []

    def clear(self, _job_ids):
        """Removes that, so that later runs are not disturbed."""


class Docker(Engine):
    """A Docker daemon of its own (tests/cluster/docker.sh)."""
    name = "docker"
    deadline = 360.0
    session = "busybox setsid"
    arrival = 1.0
    extra_seconds = 20
    gone_in = 10

    def job_lines(self, kind, folder):
        return f"{image_of(kind)}container: {{volumes: {json.dumps([f'{place}:{place}:ro' for place in mounted(folder)])}}}\n"

    def _list(self, job_ids):
        sys.path.insert(0, CLUSTER)
        import shoal_image  # pylint: disable=import-outside-toplevel
        for kind, label in (("containers", "Id"), ("networks", "Id")):
            told = json.loads(shoal_image.ask("GET", f"/{kind}/json?all=true" if kind == "containers" else f"/{kind}"))
            for one in told:
                if (one.get("Labels") or {}).get("shoal.dev/job") in job_ids:
                    yield kind, one[label], shoal_image.ask

    def left(self, job_ids):
        return [f"{kind} {name[:12]}" for kind, name, _ in self._list(job_ids)]

    def clear(self, job_ids):
        for kind, name, ask in list(self._list(job_ids)):
            with contextlib.suppress(RuntimeError):
                ask("DELETE", f"/{kind}/{name}?force=true")


class Slurm(Engine):
    """A Slurm of three nodes (tests/cluster/slurm.sh)."""
    name = "slurm"
    deadline = 360.0
    arrival = 1.0
    extra_seconds = 30
    gone_in = 10

    def job_lines(self, _kind, _folder):
        return "slurm: {partition: main}\n"

    @staticmethod
    def _queue(job_ids):
        lines = subprocess.run(["squeue", "--noheader", "--format=%i|%T|%j|%k"], capture_output=True, text=True, check=False, timeout=60).stdout.splitlines()
        return [line for line in lines if any(job in line for job in job_ids)]

    def left(self, job_ids):
        return [f"allocation {line}" for line in self._queue(job_ids)]

    def clear(self, job_ids):
        for line in self._queue(job_ids):
            subprocess.run(["scancel", line.split("|")[0]], check=False, timeout=60)


class Kubernetes(Engine):
    """A Kubernetes of two nodes, whose processes are this machine's (tests/cluster/kubernetes.sh)."""
    name = "kubernetes"
    deadline = 360.0
    variables = ("SHOAL_KUBE_LAUNCHER_IMAGE",)
    session = "busybox setsid"
    gather = 90.0              # a pod that is lost is made again after 10 s, or 20 s
    coordinator_timeout = 30.0
    arrival = 4.0
    extra_seconds = 60
    gone_in = 30
    checkpoints = False
    shares_files = False
    KINDS = "jobs,pods,services,secrets,configmaps,networkpolicies"

    def job_lines(self, kind, folder):
        volumes = [f"host:{place}:{place}:ro" for place in mounted(folder)]
        return f"{image_of(kind)}kubernetes: {{volumes: {json.dumps(volumes)}}}\n"

    def objects(self, kinds, job_ids):
        """Of these jobs, by the administrator."""
        selector = f"shoal.dev/job in ({','.join(job_ids)})"
        told = subprocess.run(["kubectl", "get", kinds, "-l", selector, "-o", "json"], capture_output=True, text=True, check=False, timeout=60)
        if told.returncode != 0:
            raise ConnectionError(told.stderr)
        return json.loads(told.stdout)["items"]

    def left(self, job_ids):
        try:
            return [f"{one['kind']} {one['metadata']['name']}" for one in self.objects(self.KINDS, job_ids)] if job_ids else []
        except ConnectionError as e:
            return [f"the API server does not answer: {e}"]

    def clear(self, job_ids):
        subprocess.run(["kubectl", "delete", self.KINDS, "-l", f"shoal.dev/job in ({','.join(job_ids)})", "--wait=false"],
                       check=False, capture_output=True, timeout=60)


class ClusterHome(harness.Home):
    """A Home whose jobs run on another engine: their processes carry the job's ID, and not always the home's path."""

    def __init__(self, engine, binary):
        super().__init__(binary)
        self.engine = engine
        os.chmod(self.root, 0o755)  # pods and containers read files of it

    def __exit__(self, *error):
        super().__exit__(*error)
        jobs = self._ids
        if self.engine.left(jobs):
            self.engine.clear(jobs)

    def environ(self, extra=None):
        kept = {name: os.environ[name] for name in self.engine.variables}
        if self.engine.name == "kubernetes":
            kept["KUBECONFIG"] = os.environ["SHOAL_TEST_KUBE_USER"]  # may do what deploy/kubernetes/rbac.yaml says
        return super().environ({"SHOAL_ENGINE": self.engine.name, **kept, **(extra or {})})

    @property
    def _ids(self):
        return {os.path.basename(d) for d in self.job_dirs()} or getattr(self, "_known_ids", set())

    def marks(self):
        self._known_ids = self._ids
        return super().marks() + [f"SHOAL_JOB_ID={job}".encode() for job in self._known_ids]

    def leftovers(self, seconds=5.0, outputs=()):
        jobs = self._ids
        left = lambda: super(ClusterHome, self).leftovers(0, outputs) + self.engine.left(jobs)
        harness.poll_until(lambda: not left(), self.engine.gone_in * harness.PATIENCE, pause=0.3)
        return left()


ENGINES = {engine.name: engine for engine in (Engine, Docker, Slurm, Kubernetes)}
