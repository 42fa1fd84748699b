"""Finished trainings are saved and can be read again; only what was meant is trained on; labels are those of the training."""
import json
import os
import random
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

JOB = """\
name: sections
framework: shoal
learn: {algorithm: %s}
data:
  train: {source: train.data, format: %s}
  %s: {source: other.data, format: %s}
roles: {worker: 1}
outputs: {model: model}
"""


class OutputModelTest(harness.JobsTest):
    def train(self, *arguments):
        code, out, err = self.home.run("train", *arguments, "--output", "model", "--json")
        self.assertEqual(code, 0, err)
        return json.loads(out.splitlines()[-1])

    def predict(self, data):
        code, out, err = self.home.run("predict", "model", "--data", data, "--json")
        self.assertEqual(code, 0, err)
        return json.loads(out), self.home.run("predict", "model", "--data", data, "--output", "-")[1]

    def test_words_with_form_feeds_and_a_file_that_nfs_keeps(self):
        text = self.home.write("text", b"page\x0cbreak col\x0bumn caf\xe9 word\n" * 200)
        os.mkdir(self.home.path("model"))
        self.home.write("model/.nfs00000000000a1b2c00000001", "")
        self.train("word2vec", "--data", text, "--dim", "8", "--min-count", "1", "--epochs", "1")
        for model in ("model", "model/vectors.txt"):
            code, out, err = self.home.run("nearest", model, "col\x0bumn", "--json")
            self.assertEqual(code, 0, err)
            self.assertIn("page\x0cbreak", [n["word"] for n in json.loads(out)["neighbours"]])

    def test_an_infinite_loss_of_held_out_examples(self):
        train = self.home.write("train.svm", "1 1:1\n0 1:-1 2:1\n" * 500)
        test = self.home.write("test.svm", "0 1:3e38\n1 1:-3e38 2:1\n" * 50)
        done = self.train("logistic", "--data", train, "--test", test, "--normalize=false")
        self.assertIsNone(done["log_loss"])
        self.assertEqual(self.predict(test)[0]["examples"], 100)

    def test_csv_without_the_labels_column(self):
        draw = random.Random(1)
        rows = [(draw.randrange(7), draw.randrange(2)) for _ in range(2000)]
        cells = [f"x{a},{b}" for a, b in rows]
        labels = [int(a < 3) for a, _ in rows]
        with_labels = "class,a,b\n" + "".join(f"{label},{c}\n" for label, c in zip(labels, cells))
        self.train("logistic", "--data", self.home.write("train.csv", with_labels))
        quality, expected = self.predict(self.home.path("train.csv"))
        self.assertGreater(quality["auc"], 0.99)
        for name, text in (("no-label.csv", "a,b\n" + "".join(f"{c}\n" for c in cells)),
                           ("bare.csv", "".join(f"{c}\n" for c in cells))):
            quality, predicted = self.predict(self.home.write(name, text))
            self.assertEqual(predicted, expected, name)
            self.assertEqual((quality["examples"], quality["auc"], quality["accuracy"]), (2000, None, None), name)
        # A column of the training that is missing is named: the predictions are worse for it.
        code, _, err = self.home.run("predict", "model", "--data",
                                     self.home.write("less.csv", "class,b\n" + "".join(
                                         f"{label},{b}\n" for label, (_, b) in zip(labels, rows))))
        self.assertEqual(code, 0, err)
        self.assertIn("lacks 1 of the columns that the model was trained on", err)
        self.assertTrue(err.endswith(": a\n"), err)
        # A model that was written before columns were kept, and scaled.
        self.train("logistic", "--data", self.home.path("train.csv"), "--normalize=rows")
        expected = self.predict(self.home.path("train.csv"))[1]
        path = self.home.path("model", "model.json")
        with open(path, encoding="utf-8") as f:
            facts = json.load(f)
        del facts["data"]["columns"]
        with open(path, "w", encoding="utf-8") as f:
            json.dump(facts, f)
        self.assertEqual(self.predict(self.home.path("train.csv"))[1], expected)

    def test_sections_of_data_that_nobody_documents(self):
        self.home.write("train.data", "1 1:1\n0 2:1\n" * 10)
        self.home.write("other.data", "1 1:1\n0 2:1\n" * 10)
        job = self.home.write("job.yaml", JOB % ("logistic", "libsvm", "extra", "libsvm"))
        for command in ("run", "plan"):
            code, _, err = self.home.run(command, job)
            self.assertEqual(code, 2, err)
            self.assertIn("job.yaml:6:3: data.extra: got data extra, expected train, test to measure", err)
        job = self.home.write("job.yaml", JOB % ("word2vec", "text", "test", "text"))
        code, _, err = self.home.run("run", job)
        self.assertEqual(code, 2, err)
        self.assertIn("job.yaml:6:3: data.test: not expected beside data.train", err)
        job = self.home.write("job.yaml", JOB % ("logistic", "libsvm", "test", "libsvm"))
        code, _, err = self.home.run("run", job)
        self.assertEqual(code, 0, err)

    def test_a_stop_at_once_leaves_the_old_model(self):
        data = self.home.write("data.svm", "1 1:1\n0 2:1\n" * 100_000)
        first = self.train("logistic", "--data", data)
        process = self.home.start("train", "logistic", "--data", data, "--output", "model", "--epochs", "100000")
        self.assertTrue(harness.poll_until(lambda: len(self.home.job_dirs()) == 2, 30 * harness.PATIENCE))
        process.send_signal(signal.SIGINT)
        code = process.wait(60 * harness.PATIENCE)
        self.assertEqual(code, 130, harness.said(process))
        with open(self.home.path("model", "model.json"), encoding="utf-8") as f:
            facts = json.load(f)
        if "before anything was trained" in harness.said(process):  # it may have trained a little
            self.assertFalse(facts["training"]["drained"])
            self.assertEqual(facts["files"]["weights.bin"]["sha256"], first["digest"])
        self.assertEqual(self.home.leftovers(), [])


if __name__ == "__main__":
    unittest.main()
