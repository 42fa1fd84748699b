"""`shoal usage` without a server: hours of real jobs, months, CSV, removed jobs. tests/e2e/server/server_usage_test.py: with one."""
import csv
import datetime
import io
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

JOB = """name: {name}
command: [sh, -c, '{script}']
roles: {{worker: {{replicas: 2, resources: {{cpu: 0.5, memory: 64Mi}}, restart: {{limit: 0}}}}}}
"""


class UsageTest(harness.JobsTest):
    def job(self, name, script, code=0):
        path = self.home.write(f"{name}.yaml", JOB.format(name=name, script=script))
        done, out, err = self.home.run("run", path, seconds=60)
        self.assertEqual(done, code, out + err)

    def usage(self, *options):
        code, out, err = self.home.run("usage", *options)
        self.assertEqual(code, 0, err)
        return out

    def test_hours_of_jobs(self):
        month = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m")
        self.assertEqual(self.usage(), f"no job held anything from {month} to {month}\n")
        self.job("good", "sleep 1")
        self.job("bad", "sleep 1; exit 3", 1)
        rows = list(csv.DictReader(io.StringIO(self.usage("--csv", "--by", "queue,engine", "--since", "2026-01"))))
        self.assertEqual([(row["queue"], row["engine"], row["jobs"]) for row in rows], [("default", "local", "2")])
        row = {name: float(value) for name, value in rows[0].items() if name.endswith(("hours", "idle", "failed"))}
        # Two jobs of two tasks, half a core and 64 MiB each, for at least a second; one of them failed.
        self.assertGreaterEqual(row["task_hours"] * 3600, 4)
        self.assertAlmostEqual(row["cpu_hours"], 0.5 * row["task_hours"], delta=2e-6)
        self.assertAlmostEqual(row["memory_gib_hours"], row["task_hours"] / 16, delta=2e-6)
        self.assertGreaterEqual(row["cpu_hours_failed"] * 3600, 1)
        self.assertLess(row["cpu_hours_failed"], row["cpu_hours"])
        self.assertLess(row["cpu_hours_idle"], row["cpu_hours"] / 2)
        before = json.loads(self.usage("--json"))
        self.assertEqual(before["month"], month)
        self.assertEqual(self.home.run("jobs", "--prune", "0s")[0], 0)
        after = json.loads(self.usage("--json"))
        self.assertEqual(after["jobs"], 2)
        self.assertAlmostEqual(after["cpu_hours"], before["cpu_hours"], delta=1e-9)
        self.assertEqual(self.usage("--month", "2020-01"), "no job held anything from 2020-01 to 2020-01\n")

    def test_wrong_options(self):
        for options, message in ((("--by", "colour"), "--by: got 'colour', expected month, team"), (("--month", "November"), "such as 2026-11"),
                                 (("--since", "2026-11", "--until", "2026-10"), "is before the first"),
                                 (("--month", "2026-11", "--since", "2026-10"), "--since")):
            code, out, err = self.home.run("usage", *options)
            self.assertEqual((code, out), (2, ""), err)
            self.assertIn(message, err)


if __name__ == "__main__":
    unittest.main()
