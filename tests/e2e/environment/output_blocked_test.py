"""A command whose standard error nobody reads serves signals; one whose state home was moved says that lines are missing."""
import fcntl
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

JOB = """\
name: lasting
command: [sh, -c, "trap 'exit 0' TERM; echo up; while [ ! -e %(go)s ]; do sleep 0.05; done; echo down"]
roles: {worker: {replicas: 2}}
"""


def full_pipe():
    """Both ends of a pipe without room."""
    out, into = os.pipe()
    os.set_blocking(into, False)
    for size in (4096, 1):
        try:
            while True:
                os.write(into, b"x" * size)
        except BlockingIOError:
            pass
    fcntl.fcntl(into, fcntl.F_SETFL, fcntl.fcntl(into, fcntl.F_GETFL) & ~os.O_NONBLOCK)
    return out, into


class OutputBlockedTest(harness.JobsTest):
    def setUp(self):
        super().setUp()
        self.go_on = self.home.path("go")
        self.job = self.home.write("job.yaml", JOB % {"go": self.go_on})
        self.moved = self.home.path("moved")

    def said(self):
        with open(self.home.path("out"), encoding="utf-8") as f:
            return f.read()

    def begin(self, stderr):
        with open(self.home.path("out"), "wb") as out:
            process = subprocess.Popen([self.home.binary, "run", self.job], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=stderr, env=self.home.environ(), cwd=self.home.root,
                                       start_new_session=True)
        self.addCleanup(process.kill)
        self.assertTrue(harness.poll_until(lambda: self.said().count("| up") == 2, 60 * harness.PATIENCE), self.said())
        return process

    def test_signals_are_served(self):
        out, into = full_pipe()
        process = self.begin(into)
        # The engine warns of records that it cannot write.
        os.rename(self.home.home, self.moved)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60 * harness.PATIENCE), 130, self.said())
        os.close(into)
        os.close(out)

    def test_lines_that_cannot_be_shown(self):
        process = self.begin(subprocess.DEVNULL)
        os.rename(self.home.home, self.moved)
        with open(self.go_on, "wb"):
            pass
        process.wait(60 * harness.PATIENCE)
        for worker in range(2):
            self.assertIn(f"log lines of worker {worker} are lost: ", self.said())


if __name__ == "__main__":
    unittest.main()
