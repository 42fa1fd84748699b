"""What `shoal plan --engine kubernetes` prints of examples and imported files, before the API server's own validation. kubernetes_test.py
runs it as one of its tests.
"""
import glob
import json
import os
import subprocess

from cluster_jobs import SOURCE, until
from kubernetes_cluster import kubectl, objects_in


class PlannedPods:
    def test_the_server_takes_each_planned_pod(self):
        """Of every example and every imported file of the suite, by the API server's own validation and admission."""
        namespace = "planned"
        kubectl("create", "namespace", namespace)
        self.addCleanup(kubectl, "delete", "namespace", namespace, "--wait=false")
        files = [path for place in ("examples/*.yaml", "examples/*/*.yaml", "examples/import/*", "tests/golden/import/*",
                                    "tests/golden/job/kubernetes*.yaml")
                 for path in glob.glob(os.path.join(SOURCE, place)) if path.endswith((".yaml", ".json", ".sh"))]
        texts = []
        for path in sorted(set(files)):
            if (text := self.planned(path, namespace)) is not None:
                texts.append(text)
        self.assertGreater(len(texts), 25, files)
        made = objects_in(kubectl("-n", namespace, "create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-", text="---\n".join(texts)))
        for one in made:
            one["metadata"].pop("ownerReferences", None)  # they have a uid that only the cluster can give
        pods = [self.pod_of_job(one) for one in made if one["kind"] == "Job"]
        self.give(namespace, [pod["spec"] for pod in pods])
        self.taken(made + pods)
        self.row("plans of examples and imported files", f"the API server takes {len(pods)} pods of {len(texts)} jobs")
        # It would say so if it did not.
        wrong = json.loads(json.dumps(pods[0]))
        mounts = wrong["spec"]["containers"][0]["volumeMounts"]
        mounts.append(mounts[-1])
        with self.assertRaisesRegex(AssertionError, "must be unique"):
            self.taken([wrong])

    def planned(self, path, namespace):
        """Its objects as YAML, or nothing if it is no job that this engine can have."""
        plan = lambda *more: self.ask("plan", path, "--engine", "kubernetes", "--set", f"kubernetes.namespace={namespace}", *more)
        done = plan()
        if "names no image" in done.stderr:
            done = plan("--set", f"image={self.IMAGE}")
        if done.returncode != 0:
            self.assertEqual(done.returncode, 2, path + done.stderr)  # a file that is wrong by intent, or needs a file that is not here
            return None
        text = done.stdout[done.stdout.index("---"):]
        return "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("***", "eA==") + "\n"

    @staticmethod
    def pod_of_job(job):
        """As its controller would make it."""
        template = job["spec"]["template"]
        meta = dict(template["metadata"], name=job["metadata"]["name"] + "-0", namespace=job["metadata"]["namespace"])
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}

    def give(self, namespace, specs):
        """What pods name and a cluster must have for them."""
        for spec in specs:
            if name := spec.get("serviceAccountName"):
                kubectl("-n", namespace, "create", "serviceaccount", name, check=False)
            if name := spec.get("priorityClassName"):
                kubectl("create", "priorityclass", name, "--value=1", check=False)
                self.addCleanup(kubectl, "delete", "priorityclass", name, check=False)
            if name := spec.get("runtimeClassName"):
                kubectl("create", "-f", "-", check=False, text=json.dumps(
                    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name}))
                self.addCleanup(kubectl, "delete", "runtimeclass", name, check=False)
        self.assertTrue(until(lambda: "default" in kubectl("-n", namespace, "get", "serviceaccounts", "-o", "name")))

    def taken(self, made):
        done = subprocess.run(["kubectl", "create", "--dry-run=server", "--validate=false", "-f", "-"], input=json.dumps({"apiVersion": "v1", "kind": "List", "items": made}),
                              capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(done.stdout.splitlines()), len(made), done.stdout)
