"""`shoal stop` ends a job whose coordinator is stopped (SIGSTOP), and hurries no controller that has heard of the end."""
import json
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

JOB = """\
name: lasting
command: [sh, -c, "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"]
limits: {stop_grace: 20s}
"""


class InterruptedFrozenTest(harness.JobsTest):
    def freeze_coordinator(self):
        pid = next(p.pid for p in self.home.processes() if p.kind == "coordinator")
        os.kill(pid, signal.SIGSTOP)

    def state(self):
        return json.loads(self.home.run("jobs", "--json")[1].splitlines()[0])["state"]

    def test_stop(self):
        process = self.start_job(JOB, "up")
        self.freeze_coordinator()
        code, out, err = self.home.run("stop", "lasting")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(process.wait(30 * harness.PATIENCE), 130)
        self.assertIn("| saved", harness.said(process))
        self.assertEqual(self.state(), "cancelled")
        self.assertEqual(self.home.leftovers(), [])

    def test_stop_now_without_a_controller(self):
        process = self.start_job(JOB, "up")
        self.freeze_coordinator()
        process.kill()
        process.wait()
        code, out, err = self.home.run("stop", "lasting", "--now")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.state(), "cancelled")
        self.assertEqual(self.home.leftovers(), [])

    def test_the_command_is_not_signalled_when_its_job_was_stopped(self):
        process = self.start_job(JOB, "up")
        self.assertEqual(self.home.run("stop", "lasting")[0], 0)
        self.assertEqual(process.wait(30 * harness.PATIENCE), 130)
        said = harness.said(process)
        self.assertNotIn("SIGTERM", said)
        self.assertNotIn("Ctrl-C", said)


if __name__ == "__main__":
    unittest.main()
