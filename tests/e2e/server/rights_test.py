"""People of a server: the table of rights, cell by cell, against a running server; two teams that do not see each other; tokens;
the audit log."""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import Server, job_text  # noqa: E402  pylint: disable=wrong-import-position

ROLES = ("viewer", "member", "operator", "administrator")
# Bodies and parameters that pass the checks of arguments, so that rights decide.
BODIES = {
    "submitJob": {"file": job_text(), "team": "red"}, "planJob": {"file": job_text(), "team": "red"},
    "submitAll": {"file": job_text(), "team": "red"}, "putSchedule": {"file": job_text() + "schedule: {cron: 0 0 1 1 *}\n"},
    "tryJob": {"file": job_text(), "team": "red"}, "setQueueMode": {"mode": "open"},
    "scaleJob": {"role": "worker", "replicas": 2}, "findMissingFiles": {"digests": [], "team": "red"},
    "createUser": {"name": "new"}, "createTeam": {"name": "new"}, "setMember": {"role": "viewer"}, "setSecret": {"value": "x"},
    "setDatabase": {"team": "red", "locations": ["/data/"]}, "setTagPolicy": {"action": "deny"},
    "createTable": {"sources": ["/data/x"], "format": "text"}, "createGrant": {"to": "everyone"}, "setColumn": {"tags": []},
    "addModelVersion": {"manifest": "x"}, "setModelTag": {"version": "1"},
    "setWebhook": {"url": "https://hooks.example.org/"}, "setServerWebhook": {"url": "https://hooks.example.org/"},
    "runSql": {"text": "!show tables;"}, "completeSql": {"text": "", "cursor": 0}, "inspectSql": {"text": "", "cursor": 0},
}
QUERIES = {"readModelFile": "?path=none", "compareModels": "?first=a&second=b", "getFile": "?team=red",
           "putFile": "?team=red&offset=0&size=4", "readOutput": "?path=none"}
# What the server answers when the right is there, though not with success.
ALLOWED = (200, 201, 202, 204, 404, 409, 412, 422, 426)


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


class RightsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.server.start()
        cls.tokens = {role: cls.server.make_user(f"{role}-red", "red", role) for role in ROLES[:3]}
        cls.tokens["administrator"] = cls.server.admin
        cls.stranger = cls.server.make_user("stranger", "blue", "operator")
        cls.job = cls.server.submit(job_text(script="sleep 1000"), team="red")
        cls.server.wait_for(cls.job, ("running",))

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def call(self, method, path, operation, token):
        name = operation["operationId"]
        target = (path.replace("{id}", self.job).replace("{team}", "red").replace("{name}", "nobody-here")
                  .replace("{queue}", "default").replace("{database}", "nothing").replace("{table}", "nothing.here")
                  .replace("{model}", "nothing").replace("{version}", "1").replace("{grant}", "00").replace("{column}", "x").replace("{tag}", "x")
                  .replace("{user}", "nobody-here").replace("{task}", "worker-0").replace("{attempt}", "0")
                  .replace("{sha256}", "0" * 64).replace("/tokens/nobody-here", "/tokens/000000000000"))
        if name == "removeTeam":
            target = "/api/v1/teams/none"
        body = BODIES.get(name, {}) if "requestBody" in operation else None
        if name == "putFile":
            body = b"text"
        return self.server.request(method, target + QUERIES.get(name, ""), body, token)

    def test_table(self):
        document = self.server.get("/openapi.json", token=None).json
        cells = 0
        for method, path, operation in operations(document):
            name = operation["operationId"]
            needed = operation.get("x-shoal-role")
            # Streams do not end; stopping and removing would end the job that the others need.
            if needed is None or name in ("streamJob", "followJob", "stopJob", "suspendJob", "resumeJob"):
                continue
            for role in ROLES:
                with self.subTest(f"{method} {path} as {role}"):
                    reply = self.call(method, path, operation, self.tokens[role])
                    allowed = needed == "none" or ROLES.index(role) >= ROLES.index(needed)
                    own = name in ("scaleJob", "removeJob", "removeSchedule") and role == "member"  # it is another user's
                    own = own or (name == "setQueueMode" and role == "operator")  # only of teams that the policy names
                    if allowed and not own:
                        self.assertIn(reply.status, ALLOWED, reply)
                        self.assertNotIn(b"needs the role", reply.body)
                    else:
                        self.assertEqual(reply.status, 403, reply)
                    cells += 1
            with self.subTest(f"{method} {path} without a token"):
                reply = self.call(method, path, operation, None)
                self.assertEqual(reply.status, 401, reply)
                self.assertIn("Bearer", reply.headers["WWW-Authenticate"])
            if "{id}" in path:
                with self.subTest(f"{method} {path} of another team"):
                    self.assertEqual(self.call(method, path, operation, self.stranger).status, 404)
        self.assertGreater(cells, 100)

    def test_scopes(self):
        token = self.server.make_user("reader", "red", "operator", scopes=["jobs:read"])
        self.assertEqual(self.server.get(f"/jobs/{self.job}", token).status, 200)
        for method, target, body in (("POST", f"/jobs/{self.job}/stop", {}), ("GET", f"/jobs/{self.job}/logs", None),
                                     ("GET", f"/jobs/{self.job}/stream?logs=true", None),
                                     ("POST", f"/jobs/{self.job}/stream", {"logs": True}), ("POST", "/tokens", {})):
            reply = self.server.request(method, target, body, token)
            self.assertEqual(reply.status, 403, reply)
            self.assertIn("lacks the scope", reply.detail)

    def test_another_team_sees_nothing(self):
        self.assertEqual(self.server.get("/jobs", self.stranger).json["items"], [])
        self.assertEqual(self.server.get("/jobs?team=red", self.stranger).json["items"], [])
        self.assertEqual(self.server.get(f"/jobs?id={self.job[:6]}", self.stranger).json["items"], [])
        self.assertEqual(self.server.get("/events", self.stranger).json["items"], [])
        unknown = self.server.get("/jobs/none-000000", self.stranger)
        hidden = self.server.get(f"/jobs/{self.job}", self.stranger)
        self.assertEqual(unknown.status, hidden.status)
        self.assertEqual(unknown.detail.replace("none-000000", self.job), hidden.detail)
        reply = self.server.post("/jobs", {"file": job_text(), "team": "red"}, self.stranger)
        self.assertEqual(reply.status, 404)

    def test_tokens_are_not_stored(self):
        token = self.server.make_user("secretive", "red")
        secret = token.rsplit("_", 1)[1].encode()
        for root, _, files in os.walk(self.server.state):
            for file in files:
                with open(os.path.join(root, file), "rb") as f:
                    self.assertNotIn(secret, f.read(), file)

    def test_forged_expired_and_revoked_tokens(self):
        token = self.server.make_user("short", "red")
        parts = token.split("_")
        flipped = parts[2][:-1] + ("0" if parts[2][-1] != "0" else "1")
        for forged in ("", "x", token + "0", token[:-1], f"shoal_{parts[1]}_{flipped}", f"shoal_{'0' * 12}_{parts[2]}",
                       "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.", token.upper(), "a" * 10_000):
            self.assertEqual(self.server.request("GET", "/me", token=None,
                                                 headers={"Authorization": f"Bearer {forged}"}).status, 401, forged[:40])
        with self.subTest("revoked"):
            mine = self.server.get("/tokens", token).json["items"]
            self.assertEqual(self.server.request("DELETE", f"/tokens/{mine[0]['id']}", token=token).status, 204)
            self.assertEqual(self.server.get("/me", token).status, 401)
        with self.subTest("expired"):
            made = self.server.post("/tokens", {"user": "short", "seconds": 1}).json["token"]
            from server_harness import poll_until  # pylint: disable=import-outside-toplevel
            self.assertTrue(poll_until(lambda: self.server.get("/me", made).status == 401, 10, 0.1))
        with self.subTest("disabled"):
            made = self.server.post("/tokens", {"user": "short"}).json["token"]
            self.assertEqual(self.server.get("/me", made).status, 200)
            self.server.request("PATCH", "/users/short", {"disabled": True})
            self.assertEqual(self.server.get("/me", made).status, 401)

    def test_last_administrator_stays(self):
        reply = self.server.request("PATCH", "/users/admin", {"disabled": True})
        self.assertEqual(reply.status, 409, reply)
        self.assertEqual(self.server.request("DELETE", "/users/admin").status, 409)

    def test_a_token_gives_no_more_than_it_has(self):
        token = self.server.make_user("narrow", "red", scopes=["jobs:read", "people:write"])
        reply = self.server.post("/tokens", {"scopes": ["jobs:write"]}, token)
        self.assertEqual(reply.status, 403, reply)
        made = self.server.post("/tokens", {}, token).json
        self.assertEqual(sorted(made["scopes"]), ["jobs:read", "people:write"])
        self.assertEqual(self.server.post("/tokens", {"user": "admin"}, token).status, 403)

    def test_audit(self):
        token = self.tokens["member"]
        job = self.server.submit(job_text("audited"), token, team="red")
        self.server.wait_for_end(job)
        self.server.get(f"/jobs/{job}/logs/worker-0/0", token)
        entries = self.server.get(f"/audit?object={job}").json["items"]
        actions = {e["action"]: e for e in entries}
        self.assertEqual(set(actions), {"submitJob", "readLog"})
        self.assertEqual((actions["readLog"]["user"], actions["readLog"]["team"]), ("member-red", "red"))
        self.assertEqual(self.server.get("/audit", token).status, 403)


class DocumentsTest(unittest.TestCase):
    def test_names_in_table_are_those_of_the_document(self):
        with Server() as server:
            document = server.get("/openapi.json", token=None).json
        source = os.environ["SHOAL_SOURCE"]
        with open(os.path.join(source, "docs", "rest.md"), encoding="utf-8") as f:
            rows = re.findall(r"^\| `([A-Z]+) (\S+)` \|", f.read(), re.M)
        self.assertEqual(sorted(rows), sorted((m, p) for m, p, _ in operations(document)))


if __name__ == "__main__":
    unittest.main()
