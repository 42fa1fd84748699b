"""The end of a job with `shoal ps-server` whose workers end well without leave(): no checkpoint that is being taken waits for
their markers."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
from bindings import PATH  # noqa: E402

WORKER = """
import numpy as np
import shoal.ps

client = shoal.ps.connect()
client.table("t", dim=1, rows=64).push(np.arange(64), np.ones((64, 1), np.float32))
client.barrier("pushed")
"""

JOB = """
name: ends
checkpoint: {every: 50ms}
roles:
  server: {replicas: 2, command: ["@shoal", ps-server], ports: [ps], follows: worker}
  worker: {replicas: 2, command: [%s, -B, %s], env: {PYTHONPATH: %s}}
"""


class End(unittest.TestCase):
    def test_servers_do_not_wait_for_workers_that_have_ended(self):
        with harness.Home() as home:
            worker = home.write("worker.py", WORKER)
            job = home.write("job.yaml", JOB % (json.dumps(sys.executable), json.dumps(worker), json.dumps(PATH)))
            run = home.start("run", job)
            code = run.wait(60 * harness.PATIENCE)
            out = harness.said(run)
            self.assertEqual(code, 0, out)
            self.assertNotIn("no longer counts", out)  # which is said of a worker after 10 s


if __name__ == "__main__":
    unittest.main(verbosity=2)
