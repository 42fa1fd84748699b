"""Policies of teams: what a job file may ask for, and the fields that it is given."""
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


if __name__ == "__main__":
    unittest.main()
