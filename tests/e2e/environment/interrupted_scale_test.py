"""A parameter server that ends before it has moved its rows: as it leaves an elastic role it is started again, and if it is
not started again the job fails; no worker waits for its rows for ever. SHOAL_BIN names the binary."""
import json
import os
import random
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

JOB = """\
name: elastic
framework: shoal
learn: {algorithm: word2vec, dim: 20, epochs: %d, min_count: 1, threads: 1}
data: {train: {source: "%s", format: text, shard_by: worker}}
roles:
  server: {replicas: %d, min: 1, max: 3, follows: worker, restart: {limit: %d, backoff: %s}}
  worker: {replicas: 2}
checkpoint: {every: 100ms}
limits: {stop_grace: %s, deadline: 90s}
outputs: {model: "%s"}
"""


class InterruptedScaleTest(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)

    def begin(self, epochs, limit, backoff="10ms", grace="200ms", servers=3):
        """Starts the job; returns once it has a checkpoint: the command, and its servers."""
        draw = random.Random(1)
        text = "".join(" ".join(f"w{draw.randrange(400)}" for _ in range(20)) + "\n" for _ in range(2500))
        corpus = self.home.write("text", text)
        process = self.home.start("run", self.home.write("job.yaml", JOB % (
            epochs, corpus, servers, limit, backoff, grace, self.home.path("model"))))
        self.addCleanup(process.kill)
        def saved():
            return any(os.path.exists(os.path.join(directory, "checkpoints", "checkpoint-0", "manifest.json"))
                       for directory in self.home.job_dirs()) or process.poll() is not None
        self.assertTrue(harness.poll_until(saved, 30 * harness.PATIENCE) and process.poll() is None, harness.said(process))
        servers = [p for p in self.home.processes() if p.argv[1:3] == ["learn", "server"]]
        return process, sorted(servers, key=lambda p: p.environ["SHOAL_INDEX"])

    def check_scaled_down(self, process, epochs, servers=2):
        """Scales down: the job succeeds, as the one that could not leave is started again."""
        code, out, err = self.home.run("scale", os.path.basename(self.home.job_dirs()[0]), f"server={servers}")
        self.assertEqual(code, 0, out + err)
        code = process.wait(100 * harness.PATIENCE)
        self.assertEqual(code, 0, harness.said(process))
        self.assertIn("before it had moved its rows", harness.said(process))
        with open(self.home.path("model", "model.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["training"]["words"], epochs * 50_000)
        self.assertEqual(self.home.leftovers(), [])

    def test_a_leaving_server_that_is_killed_comes_back(self):
        process, servers = self.begin(60, 3)
        os.kill(servers[2].pid, signal.SIGSTOP)  # moves nothing: it is killed when limits.stop_grace has passed
        self.check_scaled_down(process, 60)

    def test_a_leaving_server_whose_leader_is_away_comes_back(self):
        process, servers = self.begin(60, 3, backoff="4s", grace="30s")
        os.kill(servers[0].pid, signal.SIGKILL)  # away for longer than server 2 tries to reach it
        self.check_scaled_down(process, 60)

    def test_the_only_other_server_comes_back_after_the_leader(self):
        process, servers = self.begin(60, 3, backoff="4s", grace="30s", servers=2)
        os.kill(servers[0].pid, signal.SIGKILL)  # it starts again as the only one of a job that began with two
        self.check_scaled_down(process, 60, servers=1)

    def test_no_server_joins_a_leader_that_is_away_and_alone(self):
        process, servers = self.begin(200, 3, backoff="4s", grace="30s", servers=1)
        job = os.path.basename(self.home.job_dirs()[0])
        os.kill(servers[0].pid, signal.SIGKILL)
        self.assertTrue(harness.poll_until(lambda: "was killed" in harness.said(process), 4), harness.said(process))
        code, out, err = self.home.run("scale", job, "server=2")
        self.assertEqual(code, 1, out + err)
        self.assertIn("server 0 is being started again and takes over all rows first; ask again when it runs", err)
        def taken():
            return self.home.run("scale", job, "server=2")[0] == 0 or process.poll() is not None
        self.assertTrue(harness.poll_until(taken, 30 * harness.PATIENCE) and process.poll() is None, harness.said(process))
        self.assertEqual(process.wait(100 * harness.PATIENCE), 0, harness.said(process))
        with open(self.home.path("model", "model.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["training"]["words"], 200 * 50_000)
        self.assertEqual([t["attempts"] for t in self.home.verdict()["tasks"] if t["role"] == "worker"], [1, 1])
        self.assertEqual(self.home.leftovers(), [])

    def test_a_server_that_joins_as_its_leader_dies(self):
        """The leader is lost before the new server could ask it anything: the number with which the job began is known all the same."""
        process, servers = self.begin(200, 3, backoff="1s", grace="30s", servers=1)
        code, out, err = self.home.run("scale", os.path.basename(self.home.job_dirs()[0]), "server=2")
        os.kill(servers[0].pid, signal.SIGKILL)
        self.assertEqual(code, 0, out + err)
        self.assertEqual(process.wait(100 * harness.PATIENCE), 0, harness.said(process))
        self.assertNotIn("in a job that began with", harness.said(process))
        self.assertEqual([t["attempts"] for t in self.home.verdict()["tasks"] if t["role"] == "worker"], [1, 1])
        self.assertEqual(self.home.leftovers(), [])

    def test_a_server_that_is_not_started_again_fails_the_job(self):
        process, servers = self.begin(2000, 0)
        os.kill(servers[2].pid, signal.SIGKILL)
        self.assertEqual(process.wait(60 * harness.PATIENCE), 1, harness.said(process))
        reason = self.home.verdict()["reason"]
        self.assertIn("server 2 was killed by signal 9", reason)
        self.assertIn("so worker cannot finish", reason)


if __name__ == "__main__":
    unittest.main()
