"""`kill -9` of one of two `shoal ps-server` programs without a checkpoint, under workers that use `import shoal.ps`.

The server comes back without its rows: the job fails and says why. A program that accepts the loss goes on, and is told
of the restart; with a checkpoint the rows come back from it.
"""
import json
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

from bindings import PATH as PYTHON  # noqa: E402

WORKER = """
import os, sys, time
import numpy as np
import shoal.ps

there = sys.argv[1]
options = {"accept_data_loss": True} if sys.argv[2] == "accept" else {}
client = shoal.ps.connect(**options)
table = client.table("t", dim=1, rows=64)
keys, ones = np.arange(64), np.ones((64, 1), np.float32)
for _ in range(30):
    table.push(keys, ones)
if sys.argv[2] == "checkpoint":
    client.checkpoint()
open(os.path.join(there, "pushed"), "w").close()
while not os.path.exists(os.path.join(there, "killed")):
    time.sleep(0.01)  # poll
for _ in range(30):
    table.push(keys, ones)
values = sorted(set(table.pull(keys)[:, 0].tolist()))
print("values", values, "restarts", [tuple(r) for r in client.server_restarts], flush=True)
client.leave()
"""

JOB = """
name: lost-rows
%s
roles:
  server: {replicas: 2, command: ["@shoal", ps-server], ports: [ps], follows: worker}
  worker: {replicas: 1, command: [%s, -B, %s, %s, %s], env: {PYTHONPATH: %s}}
"""


class LostRows(unittest.TestCase):
    def run_job(self, how):
        with harness.Home() as home:
            worker = home.write("worker.py", WORKER)
            checkpoint = "checkpoint: {every: 1h}" if how == "checkpoint" else ""
            job = home.write("job.yaml", JOB % (checkpoint, json.dumps(sys.executable), json.dumps(worker),
                                                json.dumps(home.root), how, json.dumps(PYTHON)))
            run = home.start("run", job)
            self.assertTrue(harness.poll_until(lambda: os.path.exists(home.path("pushed")), 60 * harness.PATIENCE),
                            harness.said(run))
            servers = [p for p in home.processes() if p.argv[1:2] == ["ps-server"]
                       and p.environ.get("SHOAL_INDEX") == "1"]
            self.assertTrue(servers, home.processes())
            os.kill(servers[0].pid, signal.SIGKILL)
            home.write("killed", "")
            code = run.wait(60 * harness.PATIENCE)
            return code, harness.said(run), home.verdict()

    def test_the_job_fails(self):
        code, out, verdict = self.run_job("fail")
        self.assertNotEqual(code, 0, out)
        self.assertIn("server 1 died and came back empty", out)
        self.assertEqual(verdict.get("state"), "failed", verdict)

    def test_a_program_may_accept_the_loss(self):
        code, out, _ = self.run_job("accept")
        self.assertEqual(code, 0, out)
        self.assertIn("restarts [(1, -1)]", out)
        self.assertIn("60.0]", out)

    def test_rows_come_back_from_the_checkpoint(self):
        code, out, _ = self.run_job("checkpoint")
        self.assertEqual(code, 0, out)
        self.assertIn("values [60.0] restarts [(1, 0)]", out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
