"""`kill -9` of server programs of real jobs whose rows are on two servers each: the job goes on from a copy, no row comes
back from a checkpoint, and the model is as good as without the kills. SHOAL_REPLICATION_RUNS says how many jobs (10)."""
import glob
import os
import random
import signal
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "faults")]
import harness  # noqa: E402
import planted  # noqa: E402

RUNS = int(os.environ.get("SHOAL_REPLICATION_RUNS", "10"))
JOB = """\
name: two-copies
framework: shoal
learn: {{algorithm: word2vec, dim: 32, window: 5, negative: 5, min_count: 1, sample: 0, epochs: 60, threads: 1,
         server_copies: 2}}
data:
  train: {{source: "{corpus}", format: text, shard_by: worker}}
roles:
  server: {{replicas: {servers}, follows: worker, restart: {{when: transient, limit: 9, scope: task}}}}
  worker: {{replicas: 2}}
checkpoint: {{every: 500ms, keep: 2}}
limits: {{gather: 20s, deadline: 3m, stop_grace: 2s, coordinator_timeout: 10s}}
outputs: {{model: "{output}"}}
"""


class Replication(unittest.TestCase):
    def logs(self, home):
        text = ""
        for directory in home.job_dirs():
            for name in glob.glob(os.path.join(directory, "**", "*"), recursive=True):
                if os.path.isfile(name) and os.path.getsize(name) < 1 << 26:
                    with open(name, encoding="utf-8", errors="replace") as f:
                        text += f.read()
        return text

    def servers(self, home):
        found = [p for p in home.processes() if p.kind == "server"]
        of_kind = {p.pid for p in found}
        return sorted((p for p in found if p.ppid not in of_kind), key=lambda p: p.pid)

    def one(self, seed):
        rng = random.Random(seed)
        servers = rng.choice([2, 3])
        with harness.Home() as home:
            corpus, output = home.path("corpus.txt"), home.path("vectors")
            planted.write_corpus(corpus, 400_000)
            process = home.start("run", home.write("job.yaml", JOB.format(corpus=corpus, output=output, servers=servers)))
            killed = 0
            for _ in range(2):
                # A copy is made again within this time; two deaths of a pair before that are for checkpoints.
                harness.poll_until(lambda: process.poll() is not None, 2 + rng.random())
                if process.poll() is not None:
                    break
                victims = harness.poll_until(lambda: len(self.servers(home)) == servers and self.servers(home), 10)
                if victims:
                    os.kill(rng.choice(victims).pid, signal.SIGKILL)
                    killed += 1
            self.assertEqual(process.wait(timeout=180 * harness.PATIENCE), 0, harness.said(process)[-3000:])
            self.assertGreater(planted.purity(harness.read_vectors(os.path.join(output, "vectors.bin"))), 0.95)
            text = self.logs(home)
            self.assertNotIn("came back", text)
            self.assertNotIn("was whole", text)
            if killed:
                self.assertIn("took over the rows", text)
            self.assertEqual(home.leftovers(), [])
            return killed

    def test_kills_are_not_seen(self):
        killed = 0
        for seed in range(RUNS):
            with self.subTest(seed=seed):
                killed += self.one(seed)
        self.assertGreater(killed, 0)


if __name__ == "__main__":
    unittest.main()
