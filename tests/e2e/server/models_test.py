"""Models of teams: versions that jobs of a server add, `shoal models` over it, rights, and what a killed server leaves."""
import hashlib
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import PATIENCE, Server, poll_until  # noqa: E402  pylint: disable=wrong-import-position

LARGE = 2 << 20


def text_of(name, script, more=""):
    return (f"name: {name}\nframework: generic\nroles:\n  worker: {{replicas: 1, command: [sh, -ec, {json.dumps(script)}]}}\n" + more)


def job_of(model, weights, name="trainer"):
    """A job file whose program saves a model as Shoal does: files are replaced, not written."""
    text = json.dumps({"format": "shoal-linear-model", "held_out": {"auc": 0.75}, "parameters": {"weights": weights},
                       "files": {"weights.bin": {}}})
    script = (f"mkdir -p {model}; head -c {LARGE} /dev/zero | tr '\\0' '{weights}' > {model}/.new; "
              f"mv -f {model}/.new {model}/weights.bin; echo '{text}' > {model}/model.json")
    return text_of(name, script, f"outputs: {{model: {model}}}\n")


class ModelsTest(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.__exit__)
        self.server.start()
        self.model = os.path.join(self.server.home.path(), "out", "ages")

    def versions(self, team="default", name="ages", token=""):
        reply = self.server.get(f"/teams/{team}/models/{name}", token)
        return reply.json["versions"] if reply.status == 200 else []

    def train(self, weights, token="", **fields):
        job = self.server.submit(job_of(self.model, weights), token, **fields)
        self.assertEqual(self.server.wait_for_end(job)["state"], "succeeded")
        return job

    def wait_for_versions(self, count, **which):
        found = poll_until(lambda: len(self.versions(**which)) >= count and self.versions(**which), 30 * PATIENCE)
        self.assertTrue(found, self.versions(**which))
        return found

    def test_jobs_add_versions(self):
        job = self.train("a")
        version = self.wait_for_versions(1)[0]
        self.assertEqual((version["version"], version["job"], version["by"]), (1, job, "admin"))
        self.assertEqual(version["measures"], {"auc": 0.75})
        # The note is the last event of the job, and the audit log has the version.
        notes = poll_until(lambda: [e for e in self.server.get(f"/jobs/{job}/events").json["items"] if e["type"] == "note"],
                           10 * PATIENCE)
        self.assertIn("the registry keeps the model as ages@1", str(notes))
        entries = self.server.get("/audit?action=addModelVersion").json["items"]
        self.assertEqual([(e["object"], e["user"], e["detail"]["job"]) for e in entries], [("ages@1", "admin", job)])
        self.train("b")
        self.wait_for_versions(2)
        with self.subTest("files"):
            reply = self.server.get("/teams/default/models/ages/versions/1/files?path=weights.bin")
            self.assertEqual(reply.body, b"a" * LARGE)
            whole = self.server.get("/teams/default/models/ages/versions/1").json
            digests = {f["name"]: f["sha256"] for f in whole["files"]}
            self.assertEqual(digests["weights.bin"], hashlib.sha256(b"a" * LARGE).hexdigest())
            for path in ("../../log/00000001.json", "/etc/passwd", "none", "weights.bin/.."):
                self.assertEqual(self.server.get(f"/teams/default/models/ages/versions/1/files?path={path}").status, 404)
        with self.subTest("a model takes its space once"):
            folder = os.path.join(self.server.state, "models", "default", "ages", "files")
            inodes = {os.stat(os.path.join(folder, f, "weights.bin")).st_ino for f in os.listdir(folder)}
            self.assertEqual(len(inodes), 2)
            self.assertIn(os.stat(os.path.join(self.model, "weights.bin")).st_ino, inodes)

    def test_commands_say_the_same(self):
        for weights in "ab":
            self.train(weights)
        self.wait_for_versions(2)
        registry = ["--registry", os.path.join(self.server.state, "models", "default")]
        for words in (["ls"], ["ls", "--json"], ["ls", "ages"], ["show", "ages@1"], ["show", "ages", "--json"],
                      ["compare", "ages@1", "ages@2"], ["compare", "ages@1", "ages@2", "--json"], ["show", "ages@7"],
                      ["show", "agess"], ["show", "ages@none"]):
            with self.subTest(words=words):
                here = self.server.home.run("models", *words, *registry)
                there = self.server.shoal("models", *words)
                self.assertEqual(here[0], there[0], there[2])
                self.assertEqual(here[1], there[1])
        with self.subTest("changes"):
            code, out, err = self.server.shoal("models", "promote", "ages@1")
            self.assertEqual((code, out), (0, "ages@1 is promoted\n"), err)
            self.server.shoal("models", "promote", "ages@2")
            code, out, err = self.server.shoal("rollback", "ages")
            self.assertEqual((code, out), (0, "ages@1 is promoted again\n"), err)
            code, _, err = self.server.shoal("models", "delete", "ages@1")
            self.assertNotEqual(code, 0)
            self.assertIn("ages@1 is protected by the tag promoted", err)
            code, out, err = self.server.shoal("models", "tag", "ages@2", "candidate")
            self.assertEqual((code, out), (0, "ages@2 has the tag candidate\n"), err)
            code, out, _ = self.server.shoal("models", "tag", "ages", "candidate", "--remove")
            self.assertEqual((code, out), (0, "the tag candidate of ages is removed\n"))
        with self.subTest("export and import"):
            to = self.server.home.path("exported")
            code, _, err = self.server.shoal("models", "export", "ages@1", to)
            self.assertEqual(code, 0, err)
            with open(os.path.join(to, "weights.bin"), "rb") as f:
                self.assertEqual(f.read(), b"a" * LARGE)
            code, out, err = self.server.shoal("models", "import", to, "--name", "copy")
            self.assertEqual((code, out), (0, f"{to} is copy@1\n"), err)
            self.assertEqual(self.versions(name="copy")[0]["digest"], self.versions()[0]["digest"])
        with self.subTest("to another registry"):
            other = self.server.home.path("other")
            code, out, err = self.server.shoal("models", "promote", "ages@2", "--to", other)
            self.assertEqual(code, 0, err)
            code, out, _ = self.server.home.run("models", "show", "ages", "--registry", other, "--json")
            self.assertEqual(json.loads(out)["digest"], self.versions()[1]["digest"])
        with self.subTest("delete"):
            code, out, err = self.server.shoal("models", "delete", "ages", "--keep", "1")
            self.assertEqual((code, out), (0, "there is nothing to delete\n"), err)
            code, out, err = self.server.shoal("models", "delete", "ages@2")
            self.assertEqual((code, out), (0, "deleted of ages: 2\n"), err)
            self.assertEqual([v["version"] for v in self.versions()], [1])

    def test_teams_and_roles(self):
        ann = self.server.make_user("ann", "red", "member")
        bob = self.server.make_user("bob", "red", "member")
        eve = self.server.make_user("eve", "blue", "operator")
        self.train("a", ann, team="red")
        self.wait_for_versions(1, team="red", token=ann)
        self.assertEqual(self.server.get("/teams/red/models", eve).status, 404)
        self.assertEqual(self.server.get("/teams/blue/models", eve).json["items"], [])
        target = "/teams/red/models/ages/versions/1"
        reply = self.server.request("DELETE", target, token=bob)
        self.assertEqual(reply.status, 403)
        self.assertIn("ages@1 is one of ann", reply.detail)
        narrow = self.server.make_user("narrow", "red", "member", scopes=["jobs:read"])
        self.assertEqual(self.server.get(target, narrow).status, 200)
        self.assertEqual(self.server.get(target + "/files?path=model.json", narrow).status, 403)
        self.assertEqual(self.server.request("PUT", "/teams/red/models/ages/tags/x", {"version": "1"}, narrow).status, 403)
        self.assertEqual(self.server.request("PUT", "/teams/red/models/ages/tags/7", {"version": "1"}, ann).status, 422)
        self.assertEqual(self.server.request("DELETE", target, token=ann).status, 204)
        self.assertEqual(self.server.get(target, ann).status, 404)

    def test_a_killed_server_registers_later_and_once(self):
        job = self.server.submit(job_of(self.model, "a"))
        self.server.kill()
        self.server.start()
        self.assertEqual(self.server.wait_for_end(job)["state"], "succeeded")
        self.wait_for_versions(1)
        for _ in range(3):
            self.server.kill()
            self.server.start()
        self.train("b")
        self.assertEqual([v["version"] for v in self.wait_for_versions(2)], [1, 2])

    def test_what_cannot_be_registered_is_told(self):
        secret = self.server.home.write("secret", "secret")
        script = f"mkdir -p {self.model} && ln -s {secret} {self.model}/weights.bin"
        job = self.server.submit(text_of("linker", script, f"outputs: {{model: {self.model}}}\n"))
        self.assertEqual(self.server.wait_for_end(job)["state"], "succeeded")
        notes = poll_until(lambda: [e for e in self.server.get(f"/jobs/{job}/events").json["items"] if e["type"] == "note"],
                           30 * PATIENCE)
        self.assertIn("the registry has no version of the model", str(notes))
        self.assertEqual(self.server.get("/teams/default/models").json["items"], [])

    def test_backup(self):
        self.train("a")
        self.wait_for_versions(1)
        self.server.stop()
        to = self.server.home.path("backup")
        code, _, err = self.server.home.run("server", "backup", to, "--state", self.server.state)
        self.assertEqual(code, 0, err)
        code, out, err = self.server.home.run("models", "ls", "--registry", os.path.join(to, "models", "default"))
        self.assertEqual(code, 0, err)
        self.assertIn("ages@1", out)

    def test_a_job_as_a_file(self):
        job = self.server.submit(text_of("again", "echo one"))
        self.server.wait_for_end(job)
        reply = self.server.get(f"/jobs/{job}/file")
        self.assertEqual(reply.status, 200)
        again = self.server.submit(reply.body.decode().replace("echo one", "echo two"))
        self.assertEqual(self.server.wait_for_end(again)["state"], "succeeded")
        self.assertIn(b"two", self.server.get(f"/jobs/{again}/logs/worker-0/0").body)


if __name__ == "__main__":
    unittest.main()
