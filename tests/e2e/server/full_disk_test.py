"""A server whose disk is full refuses new jobs and says so; the jobs that run lose nothing. Needs root, for a small file system."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import PATIENCE, Server, job_text, poll_until, said  # noqa: E402  pylint: disable=wrong-import-position

LINES = 80
COUNT = f"for i in $(seq 1 {LINES}); do echo line $i; sleep 0.05; done"
MIB = 1 << 20


class FullDiskTest(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.__exit__)
        os.makedirs(self.server.state, 0o700)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m,mode=0700", "tmpfs", self.server.state], check=False,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if mounted.returncode != 0:
            self.skipTest("a file system cannot be mounted (needs root)")
        self.addCleanup(self.unmount)
        self.ballast = os.path.join(self.server.state, "ballast")
        self.server.start()

    def unmount(self):
        if self.server.process.poll() is None:
            self.server.kill()
        self.server.home.kill_processes()
        poll_until(lambda: not self.server.home.processes(), 20 * PATIENCE, 0.05)
        subprocess.run(["umount", "-l", self.server.state], check=True)

    def fill(self, leave):
        """Leaves at most so many bytes free."""
        with open(self.ballast, "ab", buffering=0) as f:
            try:
                while True:
                    there = os.statvfs(self.server.state)
                    free = there.f_bavail * there.f_frsize - leave
                    if free <= 0:
                        return
                    f.write(b"x" * min(free, MIB))
            except OSError:
                return

    def check(self, job):
        self.assertEqual(self.server.wait_for_end(job, 120)["state"], "succeeded", said(self.server.process))
        for index in (0, 1):
            lines = self.server.get(f"/jobs/{job}/logs/worker-{index}/0").body.decode()
            self.assertEqual(lines, "".join(f"line {i}\n" for i in range(1, LINES + 1)))

    def test_new_jobs_are_refused(self):
        running = self.server.submit(job_text("running", COUNT))
        self.server.wait_for(running, ("running",))
        self.fill(32 * MIB)
        reply = self.server.post("/jobs", {"file": job_text()})
        self.assertEqual(reply.status, 507, reply)
        self.assertIn(f"the disk of {self.server.state} has", reply.detail)
        code, _, err = self.server.shoal("submit", self.server.home.write("job.yaml", job_text()))
        self.assertNotEqual(code, 0)
        self.assertIn("MiB left", err)
        ready = self.server.request("GET", "/readyz", token=None)
        self.assertEqual(ready.status, 200)
        self.assertIn(b"no new jobs: the disk of", ready.body)
        self.check(running)
        os.remove(self.ballast)
        self.check(self.server.submit(job_text("later", COUNT)))

    def test_running_jobs_lose_nothing(self):
        jobs = [self.server.submit(job_text(f"running{i}", COUNT)) for i in range(3)]
        for job in jobs:
            self.server.wait_for(job, ("running",))
        self.fill(0)
        # Their programs end while nothing can be stored.
        poll_until(lambda: not any(p.kind == "worker" for p in self.server.home.processes()), 15 * PATIENCE, 0.05)
        os.remove(self.ballast)
        for job in jobs:
            self.check(job)


if __name__ == "__main__":
    unittest.main()
