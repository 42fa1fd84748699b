"""SIGTERM to a job's coordinator is the loss of that process: with a controller the job goes on, without one it is cancelled."""
import contextlib
import json
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

JOB = """\
name: lasting
command: [sh, -c, "trap 'echo saved; exit 0' TERM; echo up; while [ ! -e go ]; do sleep 0.05; done"]
limits: {stop_grace: 5s}
"""


class InterruptedCoordinatorTest(harness.JobsTest):
    def coordinator(self):
        found = [p.pid for p in self.home.processes() if p.kind == "coordinator"]
        return found[0] if found else None

    def test_with_a_controller(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            process, first = self.start_job(JOB, "up"), self.coordinator()
            os.kill(first, number)
            back = harness.poll_until(lambda: "the coordinator is back" in harness.said(process), 60 * harness.PATIENCE)
            self.assertTrue(back, harness.said(process))
            self.assertNotEqual(self.coordinator(), first)
            self.home.write("go", "")
            self.assertEqual(process.wait(60 * harness.PATIENCE), 0, harness.said(process))
            self.assertEqual(harness.said(process).count("| up"), 1)
            os.unlink(self.home.path("go"))
            self.assertEqual(self.home.leftovers(), [])

    def test_all_processes_of_the_job_are_told_to_end(self):
        process = self.start_job(JOB, "up")
        jobs = [p.pid for p in self.home.processes() if p.kind in ("controller", "coordinator", "launcher")]
        for pid in jobs:
            with contextlib.suppress(ProcessLookupError):  # its launcher has ended it
                os.kill(pid, signal.SIGTERM)
        self.assertEqual(process.wait(60 * harness.PATIENCE), 130, harness.said(process))
        self.assertEqual(self.home.verdict().get("state"), "cancelled")
        self.assertEqual(self.home.leftovers(), [])

    def test_without_a_controller(self):
        process = self.start_job(JOB, "up")
        process.kill()
        process.wait()
        coordinator = self.coordinator()

        def told():
            # Until it has noticed that its controller is gone it would end for the next one to go on.
            os.kill(coordinator, signal.SIGTERM)
            return True

        self.assertTrue(harness.poll_until(lambda: not self.connected(coordinator), 20 * harness.PATIENCE) and told())
        self.assertTrue(harness.poll_until(self.home.verdict, 60 * harness.PATIENCE))
        self.assertEqual(self.home.verdict()["state"], "cancelled")
        jobs = self.home.run("jobs", "--json")[1].splitlines()
        self.assertEqual(json.loads(jobs[0])["state"], "cancelled")
        self.assertEqual(self.home.leftovers(), [])

    def test_killed_with_its_controller(self):
        process = self.start_job(JOB, "up")
        coordinator = self.coordinator()
        process.kill()
        os.kill(coordinator, signal.SIGKILL)
        process.wait()
        job = json.loads(self.home.run("jobs", "--json")[1].splitlines()[0])
        self.assertEqual(job["state"], "failed")
        self.assertGreaterEqual(job["ended"], job["started"], job)
        self.assertEqual(self.home.leftovers(), [])

    def connected(self, coordinator):
        """Whether a controller is; the launcher is always."""
        return len(self.sockets(coordinator)) > 1

    def sockets(self, pid):
        """The established TCP connections of a process."""
        inodes = set()
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                inodes.add(os.readlink(f"/proc/{pid}/fd/{name}"))
            except OSError:
                pass
        with open("/proc/net/tcp", encoding="ascii") as table:
            rows = [line.split() for line in table.readlines()[1:]]
        return [row for row in rows if row[3] == "01" and f"socket:[{row[9]}]" in inodes]


if __name__ == "__main__":
    unittest.main()
