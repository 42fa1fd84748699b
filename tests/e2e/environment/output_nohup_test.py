"""A job whose terminal closes: with SIGHUP ignored from the start (nohup) it goes on, otherwise it is cancelled."""
import json
import os
import pty
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

JOB = """\
name: patient
command: [sh, -c, "touch %(up)s; while [ ! -e %(go)s ]; do sleep 0.05; done"]
limits: {deadline: 2m}
"""


class OutputNohupTest(harness.JobsTest):
    def start_on_terminal(self, job, ignored):
        """Starts `shoal run` on a terminal of its own: pid, the terminal's other end."""
        pid, terminal = pty.fork()
        if pid == 0:
            for one in (signal.SIGHUP, signal.SIGINT):
                signal.signal(one, signal.SIG_IGN if one in ignored else signal.SIG_DFL)
            os.chdir(self.home.root)
            os.execve(self.home.binary, [self.home.binary, "run", job], self.home.environ())
        return pid, terminal

    def run_and_close(self, *ignored):
        """Closes the terminal when the job runs, then lets the job end: exit code of the command, state of the job."""
        up, go = self.home.path("up"), self.home.path("go")
        job = self.home.write("job.yaml", JOB % {"up": up, "go": go})
        pid, terminal = self.start_on_terminal(job, ignored)
        self.assertTrue(harness.poll_until(lambda: os.path.exists(up), 60 * harness.PATIENCE))
        os.close(terminal)
        if signal.SIGINT in ignored:
            os.kill(pid, signal.SIGINT)
        if not ignored:
            self.assertTrue(harness.poll_until(self.home.verdict, 60 * harness.PATIENCE))
        self.home.write("go", "")
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.assertEqual(self.home.leftovers(), [])
        jobs = self.home.run("jobs", "--json")[1].splitlines()
        return code, json.loads(jobs[0])["state"]

    def test_nohup(self):
        self.assertEqual(self.run_and_close(signal.SIGHUP), (0, "succeeded"))

    def test_background_of_a_shell_without_job_control(self):
        self.assertEqual(self.run_and_close(signal.SIGHUP, signal.SIGINT), (0, "succeeded"))

    def test_without_nohup(self):
        code, state = self.run_and_close()
        self.assertEqual((code, state), (130, "cancelled"))


if __name__ == "__main__":
    unittest.main()
