"""What tasks write to $SHOAL_OUTPUT where they do not see the job's directory: a launcher with a directory of its own, as on
another host, beside the job's real coordinator. SHOAL_BIN names the binary."""
import json
import os
import shutil
import signal
import subprocess
import unittest

import harness

JOB = """\
name: away
on_controller_loss: keep
roles:
  worker:
    restart: {when: transient, backoff: 10ms}
    command: [sh, -c, 'cd $SHOAL_OUTPUT; mkdir d; echo $SHOAL_ATTEMPT > d/attempt; head -c @BYTES@ /dev/zero > large; ln -s d/attempt link']
"""


class OutputsTest(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.away = self.home.path("away")

    def job(self, size):
        """The directory of a job that has a record and a description, and has not begun."""
        path = self.home.write("job.yaml", JOB.replace("@BYTES@", str(size)))
        code, out, err = self.home.run("run", path)
        self.assertEqual(code, 0, out + err)
        directory, = self.home.job_dirs()
        for name in ("journal", "verdict.json", "coordinator.json"):
            os.unlink(os.path.join(directory, name))
        for name in ("outputs", "logs"):
            shutil.rmtree(os.path.join(directory, name))
        os.mkdir(self.away)
        for name in ("token", "coordinator.json"):
            os.symlink(os.path.join(directory, name), os.path.join(self.away, name))
        return directory

    def begin(self, *arguments):
        process = subprocess.Popen([self.home.binary, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=self.home.environ(None), start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def listed(self):
        code, out, err = self.home.run("outputs", "away", "--json")
        self.assertEqual(code, 0, err)
        return out

    def verdict(self, directory):
        with open(os.path.join(directory, "verdict.json"), encoding="utf-8") as f:
            return json.load(f)["state"]

    def test_they_come_to_the_coordinator_and_are_listed(self):
        directory = self.job(2_000_000)
        self.begin("coordinator", "--job-dir", directory)
        task = self.begin("task", "--job-dir", self.away, "--role", "worker", "--index", "0")
        self.assertEqual(task.wait(timeout=60), 0)
        self.assertEqual(self.verdict(directory), "succeeded")
        self.assertFalse(os.path.exists(os.path.join(self.away, "outputs", "worker-0.0")))
        there = os.path.join(directory, "outputs", "worker-0.0")
        self.assertEqual(os.path.getsize(os.path.join(there, "large")), 2_000_000)
        self.assertEqual(os.readlink(os.path.join(there, "link")), "d/attempt")
        listed = self.listed()
        for name in ("d/attempt", "large", "link"):
            self.assertIn(name, listed)
        code, out, err = self.home.run("outputs", "away", "--to", self.home.path("out"))
        self.assertEqual(code, 0, out + err)
        with open(self.home.path("out", "worker-0.0", "d", "attempt"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "0\n")

    def test_of_a_launcher_that_dies_nothing_half_is_listed_and_the_next_attempt_comes_whole(self):
        directory = self.job(400_000_000)
        self.begin("coordinator", "--job-dir", directory)
        task = self.begin("task", "--job-dir", self.away, "--role", "worker", "--index", "0")
        coming = os.path.join(directory, "outputs", ".incoming", "worker-0.0", "large")
        self.assertTrue(harness.poll_until(lambda: os.path.exists(coming) and os.path.getsize(coming) > 0, 60))
        task.send_signal(signal.SIGKILL)
        task.wait()
        self.assertNotIn("worker-0", self.listed())
        again = self.begin("task", "--job-dir", self.away, "--role", "worker", "--index", "0", "--incarnation", "1")
        self.assertEqual(again.wait(timeout=60), 0)
        self.assertEqual(self.verdict(directory), "succeeded")
        there = os.path.join(directory, "outputs", "worker-0.1")
        self.assertEqual(os.path.getsize(os.path.join(there, "large")), 400_000_000)
        self.assertNotIn("worker-0.0", self.listed())


if __name__ == "__main__":
    unittest.main()
