"""What tests see of a Kubernetes cluster, and a door to its API server that can be cut. Used by kubernetes_test.py."""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import unittest

import documented_commands
from cluster_jobs import SHOAL, until

CLUSTER = os.path.join(os.environ.get("SHOAL_TEST_KUBE", ""), "cluster")
SLOW = "--slow" in sys.argv
HELM = shutil.which("helm", path=os.environ.get("SHOAL_KUBE_BIN", "") + os.pathsep + os.environ.get("PATH", ""))


def kubectl(*arguments, check=True, text=None):
    return subprocess.run(["kubectl", *arguments], capture_output=True, text=True, check=check, input=text, timeout=60).stdout


def objects(kinds="jobs,pods,services,secrets", namespace="default"):
    return json.loads(kubectl("-n", namespace, "get", kinds, "-l", "shoal.dev/job", "-o", "json"))["items"]


def objects_in(text):
    """JSON objects one behind the other, as kubectl prints them."""
    found = []
    while text := text.strip():
        one, end = json.JSONDecoder().raw_decode(text)
        found.append(one)
        text = text[end:]
    return found


def pod_of(role, index=0, phase="Running", namespace="default"):
    """Waits for it a while: what a program says is here before its node has told the API server that it runs."""
    return until(lambda: pod_now(role, index, phase, namespace), 15)


def pod_now(role, index, phase, namespace):
    for pod in objects("pods", namespace):
        if pod["metadata"]["labels"]["shoal.dev/role"] == role and pod["status"].get("phase") == phase \
                and pod["metadata"]["annotations"].get("batch.kubernetes.io/job-completion-index") == str(index) \
                and "deletionTimestamp" not in pod["metadata"]:
            return pod
    return None


def last_line(out):
    return out.strip().splitlines()[-1].removeprefix("shoal: ")[:240]


def lost_line(out):
    """What the user reads of the loss."""
    return next((line[:200] for line in out.splitlines() if "lost" in line or "node" in line), last_line(out))


class Wire:
    """A door of this machine through which bytes go to the API server, until they are cut off."""

    def __enter__(self):
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        self.pairs = []
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.door.close()
        self.cut()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                here, _ = self.door.accept()
                there = socket.create_connection(("10.99.0.1", 6443))
                self.pairs += [here, there]
                threading.Thread(target=self.carry, args=(here, there), daemon=True).start()
                threading.Thread(target=self.carry, args=(there, here), daemon=True).start()

    def carry(self, source, sink):
        with contextlib.suppress(OSError):
            while block := source.recv(1 << 16):
                sink.sendall(block)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def cut(self):
        """How many ends there were."""
        pairs, self.pairs = self.pairs, []
        for one in pairs:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        return len(pairs)


def processes_of(job):
    """Processes on this machine (the nodes' too) that carry the job's id."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if b"SHOAL_JOB_ID=" + job.encode() in file.read():
                    found.append(pid)
        except OSError:
            continue
    return found


def slow(test):
    return unittest.skipUnless(SLOW, "takes minutes; --slow")(test)


def run_documented(image):
    """Runs the documented commands of Kubernetes; those that ran."""
    names = {name: os.environ[name] for name in ("KUBECONFIG", "SHOAL_KUBE_LAUNCHER_IMAGE")}
    job = f"name: test\nimage: {image}\nroles: {{worker: {{replicas: 2, command: [echo, hello]}}}}\n"
    absent = {} if HELM else {"helm": "there is no helm; tests/cluster/helm_binary.sh builds it"}
    if HELM:
        names["PATH"] = os.pathsep.join([os.path.dirname(SHOAL), os.path.dirname(HELM), os.environ["PATH"]])
    else:
        kubectl("create", "namespace", "research")
    try:
        return documented_commands.run_all("kubernetes", image, {"job.yaml": job}, names, absent)
    finally:
        kubectl("delete", "namespace", "research", "--wait=false", check=False)
