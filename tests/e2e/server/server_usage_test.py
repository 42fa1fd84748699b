"""`shoal usage` and GET /api/v1/usage over a server: each sees the teams of its own; removed jobs stay; wrong months are refused."""
import csv
import io
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import Server  # noqa: E402  pylint: disable=wrong-import-position

JOB = """name: held
roles: {worker: {replicas: 2, resources: {cpu: 0.5}, command: [sh, -c, "sleep 1"]}}
"""


class UsageTest(unittest.TestCase):
    def test_each_sees_its_teams(self):
        with Server() as server:
            mia, otto = server.make_user("mia", "red", "member"), server.make_user("otto", "blue", "viewer")
            jobs = [server.submit(JOB, mia) for _ in range(2)]
            for job in jobs:
                self.assertEqual(server.wait_for_end(job)["state"], "succeeded")

            def rows(token, query=""):
                reply = server.get("/usage" + query, token)
                self.assertEqual(reply.status, 200, reply)
                return reply.json["items"]
            row, = rows(mia)
            self.assertEqual((row["team"], row["user"], row["queue"], row["engine"], row["jobs"]), ("red", "mia", "default", "local", 2))
            self.assertGreaterEqual(row["task_hours"] * 3600, 4)
            self.assertAlmostEqual(row["held"]["cpu_hours"], row["task_hours"] / 2, delta=1e-9)
            self.assertEqual(row["failed"]["cpu_hours"], 0)
            self.assertEqual(rows(""), [row])  # the administrator
            self.assertEqual(rows(otto), [])
            self.assertEqual(rows(otto, "?team=red"), [])
            self.assertEqual(rows(mia, "?from=2020-01&to=2020-02"), [])
            for query in ("?from=2026-13", "?to=yesterd", "?from=2026-02&to=2026-01", "?from=1990-01"):
                self.assertEqual(server.get("/usage" + query, mia).status // 100, 4, query)
            self.assertEqual(server.request("DELETE", f"/jobs/{jobs[0]}", None, mia).status, 204)
            after, = rows(mia)
            self.assertEqual(after["jobs"], 2)
            self.assertAlmostEqual(after["held"]["cpu_hours"], row["held"]["cpu_hours"], delta=1e-9)
            env = {"SHOAL_SERVER": server.url, "SHOAL_TOKEN": mia}
            code, out, err = server.home.run("usage", "--by", "team,user", "--csv", env=env)
            self.assertEqual(code, 0, err)
            shown, = csv.DictReader(io.StringIO(out))
            self.assertEqual((shown["team"], shown["user"], shown["jobs"]), ("red", "mia", "2"))


if __name__ == "__main__":
    unittest.main()
