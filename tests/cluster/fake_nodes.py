"""Simulated nodes for jobs larger than this machine: Node objects with a heartbeat, and one thread that reports each pod scheduled
onto them as running and confirms its end. No process runs. Used by bench/kubernetes.py."""
import datetime
import http.client
import json
import os
import ssl
import sys
import threading

API = ("10.99.0.1", 6443)
RESOURCE = "shoal.test/fake"  # what only these nodes have


def connect():
    certs = os.path.join(os.environ["SHOAL_TEST_KUBE"], "certs")
    context = ssl.create_default_context(cafile=os.path.join(certs, "ca.crt"))
    context.load_cert_chain(os.path.join(certs, "admin.crt"), os.path.join(certs, "admin.key"))
    return http.client.HTTPSConnection(*API, context=context, timeout=120)


def now():
    return datetime.datetime.utcnow().strftime("%Y-%m-%dT%H:%M:%SZ")


class Api:
    """Calls over one connection, over another when the server has closed it. What is refused is printed."""

    def __init__(self):
        self.line = connect()

    def call(self, method, path, body=None, kind="application/json"):
        for attempt in range(3):
            try:
                self.line.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind})
                reply = self.line.getresponse()
                text = reply.read()
                break
            except (OSError, http.client.HTTPException):
                self.line.close()
                if attempt == 2:
                    raise
        if reply.status not in (200, 201, 202, 404):
            print(f"fake nodes: {method} {path}: {reply.status} {text[:300]}", file=sys.stderr)


class FakeNodes:
    """A context: while it lasts, `count` nodes, each with room for a hundred tasks."""

    def __init__(self, count):
        self.names = [f"fake-{i}" for i in range(count)]
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.beat), threading.Thread(target=self.follow)]
        self.running = set()  # names of pods

    def status(self):
        has = {"cpu": "64", "memory": "256Gi", "pods": "110", RESOURCE: "100"}
        return {"status": {"capacity": has, "allocatable": has, "conditions": [
            {"type": "Ready", "status": "True", "reason": "Fake", "message": "", "lastHeartbeatTime": now(), "lastTransitionTime": now()}]}}

    def __enter__(self):
        api = Api()
        for name in self.names:
            api.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
                                               "spec": {"taints": [{"key": "fake", "effect": "PreferNoSchedule"}]}})
            api.call("PATCH", f"/api/v1/nodes/{name}/status", self.status(), "application/merge-patch+json")
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        api = Api()
        for name in self.names:
            api.call("DELETE", f"/api/v1/nodes/{name}")
        for thread in self.threads:
            thread.join()

    def beat(self):
        api = Api()
        while not self.over.wait(5):
            for name in self.names:
                api.call("PATCH", f"/api/v1/nodes/{name}/status", self.status(), "application/merge-patch+json")

    def follow(self):
        api = Api()
        while not self.over.is_set():
            line = connect()
            line.request("GET", "/api/v1/pods?watch=true&timeoutSeconds=5&labelSelector=shoal.dev/job")
            reply = line.getresponse()
            while event := reply.readline():
                self.take(api, json.loads(event)["object"])
            line.close()

    def take(self, api, pod):
        meta = pod["metadata"]
        if pod.get("spec", {}).get("nodeName") not in self.names:
            return
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        if "deletionTimestamp" in meta:
            self.running.discard(meta["name"])
            api.call("DELETE", path, {"gracePeriodSeconds": 0})
        elif pod["status"]["phase"] == "Pending" and meta["name"] not in self.running:
            self.running.add(meta["name"])
            api.call("PATCH", path + "/status", {"status": {"phase": "Running", "podIP": "10.200.0.1", "containerStatuses": [
                {"name": "task", "image": "x", "imageID": "x", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": now()}}}]}},
                "application/merge-patch+json")
