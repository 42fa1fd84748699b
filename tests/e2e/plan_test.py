"""`shoal plan --env TASK`: one task's environment, with placeholder addresses and without secrets."""
import json
import unittest

import harness

JOB = """\
framework: tensorflow
command: [python3, train.py]
env: {API_TOKEN: hush}
roles: {worker: 2, ps: {replicas: 1, ports: [grpc, web]}}
"""


class PlanEnvironment(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.file = self.home.write("job.yaml", JOB)

    def test_variables_of_one_task(self):
        code, out, err = self.home.run("plan", self.file, "--env", "worker-1")
        self.assertEqual((code, err), (0, ""))
        lines = dict(line.split("=", 1) for line in out.splitlines())
        self.assertEqual(json.loads(lines["TF_CONFIG"]), {
            "cluster": {"worker": ["worker-0:20000", "worker-1:20001"], "ps": ["ps-0:20002"]},
            "task": {"type": "worker", "index": 1}, "environment": "cloud"})
        self.assertEqual(lines["SHOAL_INDEX"], "1")
        self.assertEqual(lines["SHOAL_PORT"], "(at start)")
        self.assertEqual(lines["API_TOKEN"], "***")

    def test_json_and_a_role_for_its_first_task(self):
        code, out, _ = self.home.run("plan", self.file, "--env", "ps", "--json")
        self.assertEqual(code, 0)
        env = json.loads(out)
        self.assertEqual((env["SHOAL_ROLE"], env["SHOAL_INDEX"], env["API_TOKEN"]), ("ps", "0", "***"))
        self.assertNotIn("hush", out)

    def test_the_engine_local_has_no_request_but_the_plan(self):
        plan = self.home.run("plan", self.file)
        self.assertEqual(plan[0], 0)
        self.assertEqual(self.home.run("plan", self.file, "--engine", "local"), plan)

    def test_unknown_tasks_are_named(self):
        for task in ("worker-2", "chief", "worker-x-"):
            code, out, err = self.home.run("plan", self.file, "--env", task)
            self.assertEqual((code, out), (2, ""), task)
        self.assertIn("expected", err)
        code, _, err = self.home.run("plan", self.file, "--env", "worker-2")
        self.assertEqual(err, "shoal: got --env worker-2, expected one of the tasks worker-0 to worker-1, ps-0\n")


if __name__ == "__main__":
    unittest.main()
