"""`shoal train logistic` and `shoal predict` on examples whose labels follow from known weights."""
import json
import os
import random
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import harness  # noqa: E402

FEATURES = 400


def write_examples(path, count, seed):
    """`count` lines of libsvm; the label is the sign of the summed weights of 12 features out of FEATURES."""
    weights = random.Random(7)
    weight = [weights.gauss(0, 1) for _ in range(FEATURES + 1)]
    rng = random.Random(seed)
    with open(path, "w", encoding="ascii") as f:
        for _ in range(count):
            features = sorted(rng.sample(range(1, FEATURES + 1), 12))
            label = "+1" if sum(weight[i] for i in features) > 0 else "-1"
            f.write(label + "".join(f" {i}:1" for i in features) + "\n")


class Logistic(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.train, self.test = self.home.path("train.svm"), self.home.path("test.svm")
        write_examples(self.train, 20_000, 1)
        write_examples(self.test, 4_000, 2)

    def learn(self, *arguments, output="model"):
        """The last event of a training."""
        folder = self.home.path(output)
        code, out, err = self.home.run("train", "logistic", "--data", self.train, "--test", self.test, "--output", folder,
                                       "--epochs", "4", "--json", *arguments, seconds=60)
        self.assertEqual(code, 0, err)
        done = json.loads(out.strip().splitlines()[-1])
        self.assertEqual(done["event"], "done")
        return done

    def predict(self, *arguments):
        code, out, err = self.home.run("predict", self.home.path("model"), "--data", self.test, *arguments, seconds=30)
        self.assertEqual(code, 0, err)
        return out

    def test_finds_the_weights(self):
        done = self.learn()
        self.assertGreater(done["auc"], 0.97)
        self.assertLess(done["log_loss"], 0.25)
        said = json.loads(self.predict("--json"))
        self.assertAlmostEqual(said["auc"], done["auc"], places=6)
        probabilities = [float(line) for line in self.predict("--output", "-").split()]
        self.assertEqual(len(probabilities), 4_000)
        self.assertTrue(all(0 <= p <= 1 for p in probabilities))

    def test_workers_and_servers_learn_the_same(self):
        alone = self.learn()
        together = self.learn("--workers", "3", "--servers", "2", "--threads", "1", output="many")
        self.assertGreater(together["auc"], alone["auc"] - 0.01)

    def test_a_bad_line_is_named(self):
        with open(self.train, "a", encoding="ascii") as f:
            f.write("+1 7:one\n")
        code, _, err = self.home.run("train", "logistic", "--data", self.train, "--output", self.home.path("model"), seconds=30)
        self.assertEqual(code, 1, err)
        self.assertIn("train.svm:20001", err)
        self.assertFalse(os.path.exists(self.home.path("model")))


if __name__ == "__main__":
    unittest.main()
