"""`shoal train linear`, `predict` and `show` on tables: every loss is guessed or given, told, and written by name."""
import csv
import html.parser
import io
import json
import os
import random
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import harness  # noqa: E402


def write_table(path, count, seed, label):
    """Columns y, id, area, town; `label(x, rng)` of a planted sum."""
    rng = random.Random(seed)
    with open(path, "w", encoding="utf-8") as f:
        f.write("y,id,area,town\n")
        for i in range(count):
            area, town = rng.gauss(0, 1), rng.randrange(3)
            f.write(f"{label(area + (town == 1), rng)},id{i},{1e4 * area + 3e5},town{town}\n")


class Linear(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.train, self.test, self.model = (self.home.path(name) for name in ("train.csv", "test.csv", "model"))

    def learn(self, label, *arguments, code=0):
        """The last event of a training, or what it said if it is to fail."""
        write_table(self.train, 4000, 1, label)
        write_table(self.test, 1000, 2, label)
        got, out, err = self.home.run("train", "linear", "--data", self.train, "--test", self.test, "--key", "id", "--output",
                                      self.model, "--json", *arguments, seconds=100)
        self.assertEqual(got, code, err)
        return json.loads(out.strip().splitlines()[-1]) if code == 0 else err

    def predict(self, *arguments):
        code, out, err = self.home.run("predict", self.model, "--data", self.test, *arguments, seconds=60)
        self.assertEqual(code, 0, err)
        return out

    def rows(self, *arguments):
        return list(csv.reader(io.StringIO(self.predict("--output", "-", *arguments))))

    def show(self):
        code, out, err = self.home.run("show", self.model, seconds=60)
        self.assertEqual(code, 0, err)
        return out

    def test_a_model_is_continued(self):
        label = lambda x, rng: round(5e5 + 1e5 * (x + rng.gauss(0, 0.1)))  # noqa: E731
        first = self.learn(label, "--epochs", "2")
        for workers in ("1", "2"):
            done = self.learn(label, "--epochs", "2", "--from", self.model, "--workers", workers)
            self.assertLess(done["rmse"], 1.02 * first["rmse"])
        with open(os.path.join(self.model, "model.json"), encoding="utf-8") as f:
            self.assertEqual(json.load(f)["from"]["epochs"], 4)
        # A job file, whose paths are seen from where it lies.
        with open(self.home.path("next.json"), "w", encoding="utf-8") as f:
            json.dump({"name": "next", "framework": "shoal", "learn": {"algorithm": "linear", "from": "model", "validation": "10%"},
                       "data": {"train": {"source": "train.csv", "format": "csv"}}, "roles": {"worker": {"replicas": 1}},
                       "outputs": {"model": "next"}}, f)
        code, out, err = self.home.run("run", self.home.path("next.json"), "--json", seconds=100)
        self.assertEqual(code, 0, out + err)
        with open(os.path.join(self.home.path("next"), "model.json"), encoding="utf-8") as f:
            said = json.load(f)
        self.assertEqual((said["from"]["epochs"], said["parameters"]["key"]), (6, "id"))
        err = self.learn(label, "--from", self.model, "--loss", "poisson", code=2)
        self.assertIn("learn.loss: got poisson, expected squared as in the model", err)
        code, _, err = self.home.run("train", "fm", "--data", self.train, "--from", self.model, "--output", self.home.path("other"))
        self.assertEqual(code, 2)
        self.assertIn("was trained by linear, expected a model of fm", err)

    def test_numbers(self):
        done = self.learn(lambda x, rng: round(5e5 + 1e5 * (x + rng.gauss(0, 0.1))), "--epochs", "5")
        self.assertEqual(done["objective"], "squared")
        self.assertGreater(done["r2"], 0.98)
        self.assertLess(done["rmse"], 1.5e4)
        rows = self.rows()
        self.assertEqual((rows[0], rows[1][0], len(rows)), (["id", "value"], "id0", 1001))
        self.assertLess(abs(sum(float(row[1]) for row in rows[1:]) / 1000 - 5.33e5), 2e4)
        self.assertAlmostEqual(json.loads(self.predict("--json"))["rmse"] / done["rmse"], 1, places=3)
        shown = self.show()
        self.assertRegex(shown, r"area +\+?[0-9.e+]+ ")
        self.assertIn("of the predicted number", shown)
        code, _, err = self.home.run("predict", self.model, "--data", self.test, "--classes", seconds=60)
        self.assertEqual(code, 2)
        self.assertIn("the model predicts numbers (loss squared), not classes", err)

    def test_classes_with_three_workers(self):
        done = self.learn(lambda x, _: "low" if x < 0 else "middle" if x < 1 else "high", "--workers", "3", "--threads", "1",
                          "--epochs", "10", "--hash-bits", "12")
        self.assertEqual(done["objective"], "softmax")
        self.assertGreater(done["accuracy"], 0.85)
        rows = self.rows()
        self.assertEqual(rows[0], ["id", "high", "low", "middle"])
        self.assertAlmostEqual(sum(map(float, rows[1][1:])), 1, places=4)
        self.assertEqual({row[1] for row in self.rows("--classes")[1:]}, {"high", "low", "middle"})
        self.assertIn("macro F1", self.predict())
        self.assertIn("of a class's log-odds against the others", self.show())

    def test_validation_ends_it_and_is_told(self):
        done = self.learn(lambda x, rng: "yes" if x + rng.gauss(0, 1) > 0 else "no", "--validation", "10%")
        self.assertEqual(done["objective"], "logistic")
        self.assertGreaterEqual(done["best_epoch"], 1)
        self.assertGreater(done["validation_loss"], 0)
        done = self.learn(lambda x, rng: "yes" if x + rng.gauss(0, 1) > 0 else "no", "--validation", self.test)
        self.assertAlmostEqual(done["validation_loss"], done["log_loss"], places=5)

    def page(self, text):
        """The tags and the text of a report, all of whose elements are closed and need nothing from outside."""
        found, open_tags, words = set(), [], []
        class Parser(html.parser.HTMLParser):
            def handle_starttag(self, tag, attrs):
                found.add(tag)
                for name, value in attrs:
                    assert not name.startswith("on") and name not in ("src", "href"), (tag, name, value)
                if tag not in ("meta", "br"):
                    open_tags.append(tag)

            def handle_startendtag(self, tag, attrs):
                found.add(tag)

            def handle_endtag(self, tag):
                assert open_tags.pop() == tag, (tag, open_tags)

            def handle_data(self, data):
                words.append(data)
        parser = Parser()
        parser.feed(text)
        self.assertEqual(open_tags, [])
        self.assertLessEqual(found, {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "table", "tr", "th", "td", "br", "div",
                                     "span", "svg", "rect", "g", "text", "path", "polyline", "circle"})
        return " ".join(words)

    def test_a_report_shows_what_was_measured(self):
        hostile = "<script>alert(1)</script>"
        for path, count, seed in ((self.train, 4000, 1), (self.test, 1000, 2)):
            write_table(path, count, seed, lambda x, rng: f"{hostile}yes" if x + rng.gauss(0, 0.5) > 0 else "no\\'&")
            with open(path, encoding="utf-8") as f:
                lines = f.read().replace("area", hostile, 1)
            with open(path, "w", encoding="utf-8") as f:
                f.write(lines)
        code, out, err = self.home.run("train", "linear", "--data", self.train, "--test", self.test, "--key", "id", "--output", self.model,
                                       "--epochs", "5", "--validation", "10%", seconds=100)
        self.assertEqual(code, 0, err)
        out_file = self.home.path("report.html")
        code, _, err = self.home.run("report", self.model, "-o", out_file)
        self.assertEqual(code, 0, err)
        with open(out_file, encoding="utf-8") as f:
            said = self.page(f.read())
        for part in ("Loss by epoch", "Calibration", "Confusion", "Strongest features", "Parameters", hostile + "yes", "town=town1"):
            self.assertIn(part, said)
        code, out, err = self.home.run("report", self.model, "-o", "-")
        self.assertEqual((code, self.page(out)), (0, said), err)
        with open(os.path.join(self.model, "model.json"), encoding="utf-8") as f:
            saved = json.load(f)["assessment"]
        self.assertEqual((saved["of"], saved["examples"], sum(map(sum, saved["confusion"]))), ("test", 1000, 1000))
        # The same of data that is predicted; of the test data the same numbers.
        self.predict("--report", out_file)
        with open(out_file, encoding="utf-8") as f:
            predicted = self.page(f.read())
        self.assertIn("Predictions of", predicted)
        for row in saved["confusion"]:
            for count in row:
                self.assertIn(str(count), predicted)
        with open(self.test, encoding="utf-8") as f:
            lines = [line.split(",", 1)[1] for line in f]
        with open(self.test, "w", encoding="utf-8") as f:
            f.writelines(lines)
        code, _, err = self.home.run("predict", self.model, "--data", self.test, "--report", out_file)
        self.assertEqual(code, 2)
        self.assertIn("the data has no labels", err)
        # A model.json that somebody has damaged.
        path = os.path.join(self.model, "model.json")
        with open(path, encoding="utf-8") as f:
            damaged = json.load(f)
        damaged["assessment"]["confusion"] = [[1] * 500] * 500
        with open(path, "w", encoding="utf-8") as f:
            json.dump(damaged, f)
        code, _, err = self.home.run("report", self.model, "-o", "-")
        self.assertNotEqual(code, 0)
        self.assertIn("assessment: confusion", err)

    def test_folds(self):
        write_table(self.train, 2000, 1, lambda x, rng: round(1e3 * (x + rng.gauss(0, 0.3))))
        code, out, err = self.home.run("train", "linear", "--data", self.train, "--key", "id", "--folds", "3", "--output", self.model,
                                       "--json", seconds=100)
        self.assertEqual(code, 0, err)
        lines = [json.loads(line) for line in out.strip().splitlines()]
        self.assertEqual([line["state"] for line in lines if line["event"] == "done"], ["succeeded"] * 3)
        said = lines[-1]
        self.assertEqual((said["event"], len(said["measures"]["r2"]["folds"])), ("folds", 3))
        self.assertGreater(said["measures"]["r2"]["mean"], 0.85)
        self.assertGreater(said["measures"]["rmse"]["deviation"], 0)
        self.assertEqual(sorted(os.listdir(self.model)), ["fold-1", "fold-2", "fold-3"])
        code, _, err = self.home.run("train", "linear", "--data", self.train, "--folds", "3", "--output", self.model + "2",
                                     "--workers", "2", seconds=100)
        self.assertEqual(code, 2, err)
        self.assertIn("expected 1 with a fold", err)

    def test_what_is_wrong_is_said(self):
        self.assertIn("expected a count as the label", self.learn(lambda x, _: round(x), "--loss", "poisson", code=1))
        self.assertIn("class_weight: got a, expected balanced", self.learn(lambda x, _: x > 0, "--class-weight", "a", code=2))
        self.assertIn("validation: got 90%, expected", self.learn(lambda x, _: x > 0, "--validation", "90%", code=2))
        self.assertIn("weight: there is no column w; the columns are y, id, area, town",
                      self.learn(lambda x, _: x > 0, "--weight", "w", code=2))
        self.assertIn("learn.loss: got square, expected one of", self.learn(lambda x, _: x, "--loss", "square", code=2))
        self.assertFalse(os.path.exists(self.model))


if __name__ == "__main__":
    unittest.main()
