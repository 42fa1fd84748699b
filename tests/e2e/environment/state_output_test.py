"""`shoal run` whose output nobody reads, or that is frozen: signals, `shoal stop`, memory, and no line lost.
SHOAL_BIN names the binary."""
import glob
import json
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

CHATTY = "name: chatty\ncommand: [sh, -c, 'while :; do seq 20000; done']\nlimits: {stop_grace: 1s}\n"
LINES = 1_500_000
FINITE = f"name: finite\ncommand: [sh, -c, 'seq {LINES}']\n"
REPORTS = """\
name: reports
command:
  - python3
  - -c
  - |
    import os, time
    fd = int(os.environ["SHOAL_REPORT_FD"])
    text = b'{"progress": {"step": 1, "pad": "' + b"x" * 900 + b'"}}\\n'
    open(os.environ["MARK"], "w").close()
    while True:
        for _ in range(20):
            os.write(fd, text)
        time.sleep(0.001)
env: {MARK: @MARK@}
limits: {stop_grace: 1s}
"""


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) // 1024


class OutputTest(harness.JobsTest):
    def begin(self, text, *arguments):
        return subprocess.Popen([self.home.binary, "run", self.home.write("job.yaml", text), *arguments],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env=self.home.environ(), cwd=self.home.root, start_new_session=True)

    def jobs(self):
        return [json.loads(line) for line in self.home.run("jobs", "--json")[1].splitlines()]

    def until(self, condition):
        self.assertTrue(harness.poll_until(condition, 40 * harness.PATIENCE), self.jobs())

    def until_blocked(self, run):
        """The job has printed more than the pipe and the command's queue hold."""
        logs = os.path.join(self.home.home, "jobs", "*", "logs", "*.log")
        self.until(lambda: sum(os.path.getsize(log) for log in glob.glob(logs)) > 12 << 20)
        self.assertIsNone(run.poll())

    def ended(self, run):
        self.assertEqual(run.wait(30 * harness.PATIENCE), 130)
        run.stdout.close()
        self.assertEqual([job["state"] for job in self.jobs()], ["cancelled"])
        self.assertEqual(self.home.leftovers(), [])

    def test_a_signal_is_served_while_nobody_reads(self):
        for more in ([], ["--json"]):
            self.home.__exit__()
            self.home = harness.Home()
            self.addCleanup(self.home.__exit__)
            run = self.begin(CHATTY, *more)
            self.until_blocked(run)
            self.assertLess(resident(run.pid), 64)
            run.send_signal(signal.SIGTERM)
            self.ended(run)

    def test_stop_returns_while_nobody_reads(self):
        run = self.begin(CHATTY)
        self.until_blocked(run)
        code, _, err = self.home.run("stop", "chatty")
        self.assertEqual(code, 0, err)
        self.assertEqual([job["state"] for job in self.jobs()], ["cancelled"])
        run.send_signal(signal.SIGTERM)
        self.ended(run)

    def test_the_end_is_recorded_and_no_line_lost_when_the_reader_comes_late(self):
        run = self.begin(FINITE)
        self.until(lambda: [job["state"] for job in self.jobs()] == ["succeeded"])
        self.assertIsNone(run.poll())
        out = run.stdout.read().decode()
        run.stdout.close()
        self.assertEqual(run.wait(30 * harness.PATIENCE), 0)
        lines = [int(line.split(" | ")[1]) for line in out.splitlines() if " | " in line]
        self.assertEqual(len(lines), LINES)
        self.assertEqual(lines, list(range(1, LINES + 1)))
        self.assertIn("succeeded", out.splitlines()[-1])
        self.assertEqual(self.home.leftovers(), [])

    def test_a_frozen_command_costs_the_coordinator_no_memory(self):
        mark = self.home.path("mark")
        run = self.begin(REPORTS.replace("@MARK@", mark), "--quiet")
        self.until(lambda: os.path.exists(mark))
        os.kill(run.pid, signal.SIGSTOP)
        coordinator = next(p.pid for p in self.home.processes() if p.kind == "coordinator")
        before, most = resident(coordinator), 0
        end = time.monotonic() + 4
        while time.monotonic() < end:
            most = max(most, resident(coordinator))
            time.sleep(0.05)  # poll
        self.assertLess(most - before, 12)
        code, _, err = self.home.run("stop", "reports")
        self.assertEqual(code, 0, err)
        self.ended(run)


if __name__ == "__main__":
    unittest.main()
