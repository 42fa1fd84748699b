"""Somebody else stops a task: its good end is a loss then, and is made good; a job that a person stops is cancelled."""
import fcntl
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

# The first attempt of worker 0 works until it is told to end, saves, and ends well; the others wait for its second.
SAVER = """\
name: saver
roles:
  worker:
    replicas: 2
    restart: {when: transient, limit: 3, backoff: 10ms}
    command:
      - sh
      - -c
      - |
        trap 'echo saved; exit 0' TERM
        echo up $SHOAL_ATTEMPT
        if [ $SHOAL_INDEX.$SHOAL_ATTEMPT = 0.0 ]; then while :; do sleep 0.02; done; fi
        while [ ! -e "@DONE@" ]; do [ $SHOAL_INDEX = 0 ] && : > "@DONE@"; sleep 0.02; done
limits: {stop_grace: 5s, coordinator_timeout: 5s, gather: 20s}
"""


class InterruptedTest(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)

    def begin(self, text=SAVER):
        process = self.home.start("run", self.home.write("job.yaml", text.replace("@DONE@", self.home.path("done"))))
        self.addCleanup(process.kill)
        up = harness.poll_until(lambda: harness.said(process).count("up 0") == 2 or process.poll() is not None,
                                30 * harness.PATIENCE)
        self.assertTrue(up and process.poll() is None, harness.said(process))
        return process

    def task(self, index):
        """(its launcher, the init of its process tree, its program), as processes."""
        found = [p for p in self.home.processes() if p.environ.get("SHOAL_TASK", "").startswith(f"worker/{index}/") or
                 (p.kind == "worker" and p.environ.get("SHOAL_INDEX") == str(index))]
        launchers = [p for p in found if p.kind == "launcher"]
        of_launchers = {p.pid for p in launchers}
        launcher = next(p for p in launchers if p.ppid not in of_launchers)
        init = next(p for p in launchers if p.ppid == launcher.pid)
        program = next(p for p in found if p.ppid == init.pid)
        return launcher, init, program

    def check_made_good(self, process):
        code = process.wait(timeout=30 * harness.PATIENCE)
        text = harness.said(process)
        self.assertEqual(code, 0, text)
        self.assertIn("saved", text)
        self.assertIn("up 1", text)
        verdict = self.home.verdict()
        self.assertEqual(verdict["state"], "succeeded", text)
        self.assertEqual([t["attempts"] for t in verdict["tasks"]], [2, 1], text)
        self.assertEqual(self.home.leftovers(), [])

    def test_sigterm_to_a_launcher(self):
        process = self.begin()
        os.kill(self.task(0)[0].pid, signal.SIGTERM)
        self.check_made_good(process)

    def test_sigterm_to_all_processes_of_a_task_the_program_first(self):
        process = self.begin()
        for one in reversed(self.task(0)):  # as a resource manager signals a step, in any order
            os.kill(one.pid, signal.SIGTERM)
        self.check_made_good(process)

    def test_sigterm_to_the_tasks_namespace_alone(self):
        process = self.begin()
        _, init, program = self.task(0)
        os.kill(init.pid, signal.SIGTERM)
        os.kill(program.pid, signal.SIGTERM)
        self.check_made_good(process)

    def test_sigterm_to_the_program_alone_is_told_by_its_exit_code(self):
        """No other process sees that signal (docs/adr/0130): 143, as a shell encodes it, is a transient end; 0 is an end of its own."""
        process = self.begin(SAVER.replace("exit 0", "exit 143"))
        os.kill(self.task(0)[2].pid, signal.SIGTERM)
        self.check_made_good(process)

    def test_a_program_that_ends_with_143_is_suspended_and_stopped_as_any(self):
        process = self.begin(SAVER.replace("exit 0", "exit 143"))
        code, out, err = self.home.run("suspend", "saver")
        self.assertEqual((code, err), (0, ""), out)
        self.assertEqual(process.wait(timeout=30 * harness.PATIENCE), 130)
        process = self.home.start("resume", "saver")
        self.addCleanup(process.kill)
        self.assertEqual(process.wait(timeout=30 * harness.PATIENCE), 0, harness.said(process))
        self.assertEqual([t["attempts"] for t in self.home.verdict()["tasks"]], [2, 2])
        os.remove(self.home.path("done"))
        process = self.begin(SAVER.replace("exit 0", "exit 143").replace("saver", "stopped"))
        self.assertEqual(self.home.run("stop", "stopped")[0], 0)
        self.assertEqual(process.wait(timeout=30 * harness.PATIENCE), 130)
        self.assertEqual(self.home.verdict()["state"], "cancelled")
        self.assertEqual(self.home.leftovers(), [])

    def test_where_nothing_is_restarted_the_job_fails_and_says_who_stopped_it(self):
        process = self.begin(SAVER.replace("when: transient", "when: never"))
        os.kill(self.task(0)[0].pid, signal.SIGTERM)
        self.home.write("done", "")
        self.assertEqual(process.wait(timeout=30 * harness.PATIENCE), 1, harness.said(process))
        self.assertIn("worker 0 was lost: its launcher was told to stop by a signal", self.home.verdict()["reason"])

    def test_stop_returns_once_the_controller_has_removed_what_was_left(self):
        """The end is recorded before: `shoal stop` waits for the lock that the controller holds meanwhile, here the test."""
        process = self.begin()
        with open(os.path.join(self.home.job_dirs()[0], "clearing"), "w", encoding="utf-8") as clearing:
            fcntl.flock(clearing, fcntl.LOCK_EX)
            stop = self.home.start("stop", "saver")
            self.addCleanup(stop.kill)
            self.assertEqual(process.wait(timeout=30 * harness.PATIENCE), 130, harness.said(process))
            self.assertIn("cancelled", self.home.run("jobs", "--all")[1])
            self.assertIsNone(stop.poll(), harness.said(stop))
        self.assertEqual(stop.wait(timeout=30 * harness.PATIENCE), 0, harness.said(stop))

    def test_a_job_that_a_person_stops_is_cancelled_with_what_it_saved(self):
        process = self.begin()
        code, out, err = self.home.run("stop", "saver")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^saver-\S+ cancelled: stopped by `shoal stop`")
        self.assertEqual(process.wait(timeout=30 * harness.PATIENCE), 130)
        self.assertEqual(harness.said(process).count("| saved"), 2, harness.said(process))
        verdict = self.home.verdict()
        self.assertEqual(verdict["state"], "cancelled")
        self.assertEqual([t["end"]["exit_code"] for t in verdict["tasks"]], [0, 0])
        self.assertEqual(self.home.leftovers(), [])


if __name__ == "__main__":
    unittest.main()
