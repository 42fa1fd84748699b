"""A journal that cannot be written for a moment (fault points): the job waits for it. SHOAL_BIN names the binary."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

JOB = "name: brief\ncommand: [sh, -c, 'sleep 1; echo done']\nroles: {worker: {replicas: 3}}\n"


class JournalTest(harness.JobsTest):
    def test_each_append_may_fail_once(self):
        for error, words in (("ENOSPC", "No space left on device"), ("EIO", "Input/output error")):
            for append in (2, 7, 13):
                code, out, err = self.go(JOB, env={"SHOAL_FAULTS": f"journal.append={error}@{append}"})
                self.assertEqual(code, 0, out + err)
                self.assertNotIn("it is being started again", out)
                if append == 13:  # an end of a task, so the command has connected
                    self.assertIn("the job waits: the job's journal ", out)
                    self.assertIn(words, out)

    def test_a_start_may_fail_for_a_moment(self):
        for point in ("coordinator.start", "launcher.prepare"):
            code, out, err = self.go(JOB, env={"SHOAL_FAULTS": f"{point}=EIO@1;{point}=EIO@2"})
            self.assertEqual(code, 0, out + err)
            self.assertNotIn("again", out)
            self.assertEqual(out.count("| done"), 3, out)


if __name__ == "__main__":
    unittest.main()
