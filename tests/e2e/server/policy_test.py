"""Policies of teams: what a job file may ask for, and the fields that it is given."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import Server, job_text  # noqa: E402  pylint: disable=wrong-import-position


class PolicyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.server.start()
        cls.red = cls.server.make_user("mia", "red", "member")
        cls.blue = cls.server.make_user("otto", "blue", "member")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def tearDown(self):
        for target in ("/policy", "/teams/red/policy"):
            self.server.request("DELETE", target, None, self.server.admin)

    def put(self, target, policy, status=200):
        reply = self.server.request("PUT", target, policy, self.server.admin)
        self.assertEqual(reply.status, status, reply)
        return reply

    def submit(self, text, token, **fields):
        return self.server.request("POST", "/jobs", {"file": text, **fields}, token)

    def test_a_team_has_its_own_or_the_common_one(self):
        self.put("/policy", {"engines": ["docker"]})
        for token in (self.red, self.blue):
            reply = self.submit(job_text(), token)
            self.assertEqual(reply.status, 403, reply)
            self.assertIn("engine: got local, but the team's policy allows docker", reply.detail)
        self.put("/teams/red/policy", {"engines": ["local"]})
        self.assertEqual(self.server.get("/teams/red/policy", self.red).json, {"engines": ["local"]})
        self.assertEqual(self.submit(job_text(), self.red).status, 201)
        self.assertEqual(self.submit(job_text(), self.blue).status, 403)
        self.assertEqual(self.server.request("PUT", "/teams/red/policy", {}, self.red).status, 403)
        self.put("/teams/green/policy", {}, 404)
        entry = self.server.get("/audit?action=setPolicy", self.server.admin).json["items"][-1]
        self.assertEqual((entry["object"], entry["detail"]["engines"]), ("red", ["local"]))

    def test_what_job_files_ask_for(self):
        self.put("/policy", {"paths": ["/srv"], "forbidden": ["limits.keep_records"]})
        reply = self.submit(job_text() + "outputs: {model: /etc/cron.d}\n", self.red)
        self.assertEqual(reply.status, 403, reply)
        self.assertIn("outputs.model: got /etc/cron.d, but the team's policy allows /srv", reply.detail)
        self.assertEqual(self.submit(job_text(), self.red, directory="/root").status, 403)
        for how in ({}, {"set": ["limits.keep_records=1d"]}):
            text = job_text() + ("" if how else "limits: {keep_records: 1d}\n")
            reply = self.submit(text, self.red, **how)
            self.assertEqual(reply.status, 403, reply)
            self.assertIn("limits.keep_records: the team's policy forbids", reply.detail)
        reply = self.server.request("POST", "/plan", {"file": job_text() + "outputs: {model: /etc}\n"}, self.red)
        self.assertEqual(reply.status, 403, reply)

    def test_fields_that_every_job_has(self):
        self.put("/teams/red/policy", {"fields": {"slurm.account": "red", "limits.deadline": "1h"}})
        job = self.submit(job_text(), self.red)
        self.assertEqual(job.status, 201, job)
        stored = self.server.get(f"/jobs/{job.json['id']}", self.red).json["job"]
        self.assertEqual(stored["slurm"]["account"], "red")
        self.assertEqual(self.submit(job_text() + "limits: {deadline: 60m}\n", self.red).status, 201)
        reply = self.submit(job_text() + "limits: {deadline: 2h}\n", self.red)
        self.assertEqual(reply.status, 403, reply)
        self.assertIn("limits.deadline: the team's policy sets it to 1h; leave it out", reply.detail)
        reply = self.submit(job_text(), self.red, set=["slurm.account=blue"])
        self.assertEqual(reply.status, 403, reply)

    def test_command(self):
        path = self.server.home.path("policy.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"engines": ["local"], "isolated": False}, f)
        code, out, err = self.server.shoal("policy", "set", path, "--team", "red")
        self.assertEqual(code, 0, err)
        self.assertIn("the policy of the team red is set", out)
        code, out, err = self.server.shoal("policy", "show", "--team", "red", token=self.red)
        self.assertEqual((code, json.loads(out)), (0, {"engines": ["local"]}), err)
        self.assertEqual(self.server.shoal("policy", "set", path, "--team", "red", token=self.red)[0], 3)
        with open(path, "w", encoding="utf-8") as f:
            f.write('{"user": "root"}')
        code, _, err = self.server.shoal("policy", "set", path)
        self.assertEqual(code, 2, err)
        self.assertIn("other than root's", err)
        self.assertEqual(self.server.shoal("policy", "remove", "--team", "red")[0], 0)
        self.assertEqual(self.server.shoal("policy", "remove", "--team", "red")[0], 4)
        self.assertIn("policies belong to a server", self.server.home.run("policy", "show", env={"XDG_CONFIG_HOME": "/none"})[2])

    def test_fixed_fields_hold_for_roles(self):
        self.put("/policy", {"fields": {"slurm.account": "red"}})
        for change in ("roles:\n  worker: {replicas: 1, command: [a], slurm: {account: blue}}\n",
                       "roles:\n  worker: {replicas: 1, command: [a]}\nslurm: {options: ['--acc=blue']}\n"):
            reply = self.submit("name: x\n" + change, self.red)
            self.assertEqual(reply.status, 403, reply)
            self.assertIn("the team's policy sets slurm.account to red", reply.detail)

    def test_a_team_that_is_made_again_inherits_nothing(self):
        self.server.post("/teams", {"name": "brief"})
        self.put("/teams/brief/policy", {"engines": ["docker"]})
        self.assertLess(self.server.request("PUT", "/teams/brief/secrets/key", {"value": "x"}).status, 300)
        self.assertEqual(self.server.request("DELETE", "/teams/brief").status, 204)
        self.server.post("/teams", {"name": "brief"})
        self.assertEqual(self.server.get("/teams/brief/policy").json, {})
        self.assertEqual(self.server.get("/teams/brief/secrets").json["items"], [])


if __name__ == "__main__":
    unittest.main()
