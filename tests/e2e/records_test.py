"""How long records of ended jobs are kept: limits.keep_records and shoal jobs --prune. SHOAL_BIN names the binary."""
import json
import os
import unittest

import harness

JOB = """\
name: @NAME@
command: [sh, -c, "echo done"]
limits: {@LIMITS@}
"""


class RecordsTest(harness.JobsTest):
    def make(self, name, limits):
        code, out, err = self.go(JOB.replace("@NAME@", name).replace("@LIMITS@", limits))
        self.assertEqual(code, 0, out + err)

    def ids(self):
        return [line.rsplit("-", 1)[0] for line in self.home.run("jobs", "--ids")[1].split()]

    def test_they_go_when_their_time_has_passed(self):
        self.make("kept", "deadline: 1h")
        self.make("long", "keep_records: 1h")
        self.make("short", "keep_records: 1s")
        self.assertTrue(harness.poll_until(lambda: "short" not in self.ids(), 20))
        self.assertEqual(sorted(self.ids()), ["kept", "long"])
        self.assertEqual(len(self.home.job_dirs()), 2)
        code, _, err = self.home.run("show", "short")
        self.assertEqual(code, 4, err)
        code, _, err = self.home.run("logs", "long")
        self.assertEqual(code, 0, err)

    def test_prune(self):
        self.make("one", "deadline: 1h")
        self.make("two", "keep_records: 100d")
        code, out, err = self.home.run("jobs", "--prune", "1h")
        self.assertEqual((code, out), (0, ""), err)
        self.assertIn("no job ended that long ago", err)
        code, out, err = self.home.run("jobs", "--prune", "0", "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual([json.loads(line)["removed"].rsplit("-", 1)[0] for line in out.splitlines()], ["one", "two"])
        self.assertEqual(self.ids(), [])
        self.assertEqual(os.listdir(os.path.join(self.home.home, "jobs")), [])
        code, _, err = self.home.run("jobs", "--prune", "soon")
        self.assertEqual(code, 2, err)
        self.assertIn("got --prune soon, expected an age such as 7d", err)


if __name__ == "__main__":
    unittest.main()
