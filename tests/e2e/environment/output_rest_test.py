"""A command that falls behind its job's output shows all of it, although the coordinator has left by then."""
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

# More than the sockets between the coordinator and the command hold, and what is queued for it.
LINES = 600_000
JOB = f"""\
name: talks
command: [sh, -c, "echo first; while [ ! -e go ]; do sleep 0.05; done; yes 0123456789012345678901234567890123456789 | head -n {LINES}; echo last"]
"""


class OutputRestTest(harness.JobsTest):
    def coordinators(self):
        return [p for p in self.home.processes() if p.kind == "coordinator"]

    def test_all_lines_of_a_frozen_command(self):
        process = self.home.start("run", self.home.write("job.yaml", JOB))
        self.assertTrue(harness.poll_until(lambda: "| first" in harness.said(process), 60 * harness.PATIENCE))
        os.kill(process.pid, signal.SIGSTOP)
        self.home.write("go", "")
        self.assertTrue(harness.poll_until(self.home.verdict, 60 * harness.PATIENCE))
        # It waits for its controller for some seconds, and leaves.
        self.assertTrue(harness.poll_until(lambda: not self.coordinators(), 60 * harness.PATIENCE))
        os.kill(process.pid, signal.SIGCONT)
        self.assertEqual(process.wait(60 * harness.PATIENCE), 0)
        said = harness.said(process)
        self.assertEqual(said.count("| 0123456789"), LINES)
        self.assertIn("| last\n", said)
        self.assertEqual(self.home.leftovers(), [])


if __name__ == "__main__":
    unittest.main()
