"""`shoal tables --drain` and `--rebalance` on a real job: rows move while it trains, the model is as good as ever."""
import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "faults")]
import harness  # noqa: E402
import planted  # noqa: E402

JOB = """\
name: moving
framework: shoal
learn: {{algorithm: word2vec, dim: 32, window: 5, negative: 5, min_count: 1, sample: 0, epochs: 1000, threads: 1,
         server_copies: {copies}}}
data:
  train: {{source: "{corpus}", format: text, shard_by: worker}}
roles:
  server: {{replicas: 3, follows: worker}}
  worker: {{replicas: 1}}
limits: {{gather: 20s, deadline: 3m, stop_grace: 5s}}
outputs: {{model: "{output}"}}
"""


class Tables(unittest.TestCase):
    def tables(self, home, *arguments):
        return subprocess.run([home.binary, "tables", "moving", *arguments], env=home.environ(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=100)

    def bytes_by_server(self, home):
        """Of the tables with rows of words, while the job trains; None before every word has its rows. Others grow meanwhile."""
        done = self.tables(home, "--json")
        shown = json.loads(done.stdout)["tables"] if done.returncode == 0 else []
        words = planted.GROUPS * planted.GROUP_SIZE + planted.FILLERS
        shown = [table for table in shown if table["rows"] >= words]
        if len(shown) < 2:
            return None
        return [sum(of_one) for of_one in zip(*(table["bytes_by_server"] for table in shown))]

    def one(self, copies):
        with harness.Home() as home:
            corpus, output = home.path("corpus.txt"), home.path("vectors")
            planted.write_corpus(corpus, 100_000)
            process = home.start("run", home.write("job.yaml", JOB.format(corpus=corpus, output=output, copies=copies)))
            before = harness.poll_until(lambda: self.bytes_by_server(home), 60, pause=0.05)
            self.assertTrue(before, harness.said(process)[-3000:])
            self.assertTrue(all(before), before)

            done = self.tables(home, "--drain", "1", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            moved = json.loads(done.stdout)
            self.assertGreater(moved["moves"], 0)
            self.assertEqual(moved["after"][1], 0)
            drained = self.bytes_by_server(home)
            self.assertEqual(drained[1], 0, drained)
            self.assertEqual(sum(drained), sum(before))

            done = self.tables(home, "--rebalance")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("shards moved", done.stdout)
            even = self.bytes_by_server(home)
            for of_one in even:
                self.assertLess(abs(of_one - sum(even) / 3), 0.1 * sum(even) / 3, even)

            self.assertIn("there is no server 7 to drain; the job has server 0, server 1", self.tables(home, "--drain", "7").stderr)
            for wrong in (["--drain", "7"], ["--drain", "0", "1", "2"]):
                done = self.tables(home, *wrong)
                self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIsNone(process.poll())
            stopped = home.run("stop", "moving")
            self.assertEqual(stopped[0], 0, stopped)
            process.wait(timeout=60)
            self.assertEqual(home.leftovers(), [])

    def test_rows_of_one_copy_move(self):
        self.one(1)

    def test_rows_of_two_copies_move(self):
        self.one(2)


if __name__ == "__main__":
    unittest.main()
