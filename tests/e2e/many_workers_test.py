"""More workers than cores do not diverge: the loss stays a number near one worker's, and the planted structure is found.

A vocabulary of a few hundred words without sub-sampling is the hard case: every row passes its bound within one round,
and the plain sum of four workers' deltas is no number after a second (docs/adr/0010).
"""
import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "faults")]
import harness  # noqa: E402
import planted  # noqa: E402


class ManyWorkers(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.corpus = self.home.path("corpus.txt")
        planted.write_corpus(self.corpus, 400_000)

    def train(self, workers, servers):
        """(loss, purity) of a run with so many processes."""
        output = self.home.path(f"vectors-{workers}")
        code, out, err = self.home.run("train", "word2vec", "--data", self.corpus, "--output", output, "--workers",
                                       str(workers), "--servers", str(servers), "--threads", "1", "--dim", "32", "--epochs",
                                       "8", "--sample", "0", "--json", seconds=120)
        self.assertEqual(code, 0, err)
        done = json.loads(out.strip().splitlines()[-1])
        self.assertEqual(done["event"], "done")
        for key in ("words_per_second", "loss", "output"):
            self.assertIn(key, done)
        return done["loss"], planted.purity(harness.read_vectors(os.path.join(output, "vectors.bin")))

    def test_loss_and_structure(self):
        loss_of_one, purity_of_one = self.train(1, 0)
        self.assertGreater(purity_of_one, 0.95)
        for workers in (4, 8):
            with self.subTest(workers=workers):
                loss, purity = self.train(workers, 2)
                self.assertLess(loss, 1.5 * loss_of_one)
                self.assertGreater(purity, 0.9)


if __name__ == "__main__":
    unittest.main()
