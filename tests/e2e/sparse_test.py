"""`shoal train fm` and `ffm`, CSV and libffm, and trainings on sparse examples whose workers and servers are killed."""
import json
import os
import random
import signal
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import harness  # noqa: E402

JOB = """\
name: faults
framework: shoal
learn: {{algorithm: {algorithm}, epochs: {epochs}, threads: 1, {more}}}
data:
  train: {{source: "{train}", format: {format}, shard_by: worker}}
  test: {{source: "{test}", format: {format}, shard_by: worker}}
roles:
{roles}
checkpoint: {{every: 300ms, keep: 2}}
limits: {{gather: 20s, deadline: 2m, stop_grace: 2s}}
outputs: {{model: "{model}"}}
"""
RESTART = "restart: {when: transient, limit: 3, scope: task}"


def write_pairs(path, count, seed, line):
    """`count` lines; the label says whether two classes have the same parity, one in twenty is wrong."""
    rng = random.Random(seed)
    with open(path, "w", encoding="ascii") as f:
        for _ in range(count):
            a, b = rng.randrange(20), rng.randrange(20)
            label = int((a % 2 == b % 2) != (rng.randrange(20) == 0))
            f.write(line(label, a, b) + "\n")


def svm_line(label, a, b):
    return f"{label} {1 + a}:1 {21 + b}:1"


def ffm_line(label, a, b):
    return f"{label} 0:{1 + a}:1 1:{21 + b}:1"


class Sparse(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.model = self.home.path("model")

    def train(self, algorithm, *arguments):
        code, out, err = self.home.run("train", algorithm, "--output", self.model, "--json", *arguments, seconds=60)
        self.assertEqual(code, 0, err)
        return json.loads(out.strip().splitlines()[-1])

    def write(self, ending, line):
        train, test = self.home.path(f"train.{ending}"), self.home.path(f"test.{ending}")
        write_pairs(train, 6000, 1, line)
        write_pairs(test, 2000, 2, line)
        return train, test

    def assert_good(self, done, test):
        """What was trained is good, and predicts as it said while it was trained."""
        self.assertGreater(done["auc"], 0.9, test)
        code, out, err = self.home.run("predict", self.model, "--data", test, "--json")
        self.assertEqual(code, 0, err)
        self.assertAlmostEqual(json.loads(out)["auc"], done["auc"], places=5)

    def test_factors_from_every_format(self):
        lines = {
            "svm": svm_line,
            "ffm": ffm_line,
            "csv": lambda label, a, b: f"{label},a{a},b{b}",
        }
        for ending, line in lines.items():
            train, test = self.write(ending, line)
            done = self.train("fm", "--data", train, "--test", test, "--epochs", "8", "--factor-init", "0.2", "--text")
            self.assert_good(done, test)
            with open(os.path.join(self.model, "libfm.txt"), encoding="ascii") as f:
                self.assertEqual(f.readline(), "#global bias W0\n")
        self.assertLess(self.train("logistic", "--data", train, "--test", test)["auc"], 0.6)

    def test_fields_from_every_format(self):
        lines = {
            "ffm": ffm_line,
            "csv": lambda label, a, b: f"{label},a{a},b{b}",
        }
        for ending, line in lines.items():
            train, test = self.write(ending, line)
            for more in ([], ["--workers", "2", "--servers", "1", "--fields", "3"]):
                done = self.train("ffm", "--data", train, "--test", test, "--epochs", "8", "--factor-init", "0.3", "--text", *more)
                self.assert_good(done, test)
            with open(os.path.join(self.model, "xlearn.txt"), encoding="ascii") as f:
                self.assertTrue(f.readline().startswith("bias: "))
        write_pairs(self.home.path("train.svm"), 10, 1, svm_line)
        code, _, err = self.home.run("train", "ffm", "--data", self.home.path("train.svm"), "--output", self.model, "--format", "libsvm")
        self.assertEqual(code, 2)
        self.assertIn("libffm", err)

    def run_with_deaths(self, algorithm, roles, victims, more="hash_bits: 0", train_line=None):
        """Kills a process of each role in turn, an epoch or more after the one before; the AUC."""
        train, test = self.home.path("train"), self.home.path("test")
        line, form = (ffm_line, "libffm") if algorithm == "ffm" else (svm_line, "libsvm")
        write_pairs(train, 20_000, 1, train_line or line)
        write_pairs(test, 2_000, 2, line)
        job = self.home.write("job.yaml", JOB.format(algorithm=algorithm, epochs=300, train=train, test=test, format=form, roles=roles,
                                                     model=self.model, more=more))
        process = self.home.start("run", job, "--json")

        def epochs():
            return harness.said(process).count('"train_loss"')
        seen = 10
        for victim in victims:
            self.assertTrue(harness.poll_until(lambda: epochs() >= seen or process.poll() is not None,
                                               60 * harness.PATIENCE))
            self.assertIsNone(process.poll(), harness.said(process)[-2000:])
            found = [p for p in self.home.processes() if p.kind == victim]
            children = [p for p in found if p.ppid not in {q.pid for q in found}]
            os.kill(children[-1].pid, signal.SIGKILL)
            seen = epochs() + 25
        process.wait(timeout=120 * harness.PATIENCE)
        said = harness.said(process)
        self.assertEqual(process.returncode, 0, said[-3000:])
        self.assertEqual(self.home.leftovers(), [])
        code, out, err = self.home.run("predict", self.model, "--data", test, "--json")
        self.assertEqual(code, 0, err)
        self.predicted = json.loads(out)
        return self.predicted["auc"]

    MANY = f"  server: {{replicas: 2, follows: worker, {RESTART}}}\n  worker: {{replicas: 2, {RESTART}}}"
    ALONE = f"  worker: {{replicas: 1, {RESTART}}}"

    def test_switches_and_classes_by_name(self):
        table = self.home.path("people.csv")
        rng = random.Random(4)
        with open(table, "w", encoding="utf-8") as f:
            f.write("age,town,income\n")
            for _ in range(2000):
                age = rng.randrange(17, 90)
                f.write(f"{age},town{rng.randrange(5)},{'>50K' if age + rng.gauss(0, 5) > 45 else '<=50K'}\n")
        for given, key, value in ((["--bias", "false"], "bias", "false"), (["--no-bias"], "bias", "false"),
                                  (["--bias"], "bias", "true"), (["--no-normalize"], "normalize", "false"),
                                  (["--text", "--positive", "<=50K"], "text", "true")):
            self.train("logistic", "--data", table, "--label", "income", *given)
            with open(os.path.join(self.model, "model.json"), encoding="utf-8") as f:
                model = json.load(f)
            self.assertEqual(model["parameters"][key], value, given)
            positive = given[-1] if "--positive" in given else ">50K"
            self.assertEqual(model["data"]["columns"]["classes"][1], positive, given)
            code, out, err = self.home.run("predict", self.model, "--data", table, "--json")
            self.assertEqual(code, 0, err)
            self.assertEqual(json.loads(out)["positive"], positive)
        self.assertGreater(json.loads(out)["auc"], 0.97)
        code, out, err = self.home.run("show", self.model, "--json")
        self.assertEqual(code, 0, err)
        shown = json.loads(out)
        strongest = {one["feature"]: one for one in shown["strongest"]}
        self.assertEqual(next(iter(strongest)), "age")
        self.assertLess(strongest["age"]["effect"], -1)  # --positive "<=50K" was the last
        self.assertAlmostEqual(strongest["age"]["effect"], strongest["age"]["per_unit"] * strongest["age"]["deviation"], 6)
        self.assertIn("town=town3", strongest)
        self.assertEqual(shown["unnamed"], 0)
        os.unlink(table)
        code, out, err = self.home.run("show", self.model, "--top", "1")
        self.assertEqual(code, 0, err)
        self.assertIn("belong to classes that no file names", out)
        self.assertIn("income: <=50K (1) or >50K (0)", out)

    def test_a_killed_worker_takes_up_its_place(self):
        self.assertGreater(self.run_with_deaths("fm", self.MANY, ["worker"]), 0.9)

    def test_a_killed_server_is_given_its_state_again(self):
        self.assertGreater(self.run_with_deaths("fm", self.MANY, ["server"]), 0.9)

    def test_a_server_and_a_worker(self):
        self.assertGreater(self.run_with_deaths("ffm", self.MANY, ["server", "worker"]), 0.9)

    def test_two_servers(self):
        self.assertGreater(self.run_with_deaths("fm", self.MANY, ["server", "server"]), 0.9)

    def test_a_continued_training_keeps_its_model_through_deaths(self):
        train, test = self.write("svm", svm_line)
        before = self.train("fm", "--data", train, "--test", test, "--epochs", "8", "--factor-init", "0.2")
        base = self.home.path("base")
        os.rename(self.model, base)
        # Other features than the model's: what it knew is lost or doubled only by what the deaths do.
        auc = self.run_with_deaths("fm", self.MANY, ["worker", "server"], f'from: "{base}"',
                                   lambda label, a, b: svm_line(label, a + 40, b + 40))
        self.assertGreater(auc, 0.9)
        self.assertLess(self.predicted["log_loss"], 1.1 * before["log_loss"])
        with open(os.path.join(self.model, "model.json"), encoding="utf-8") as f:
            said = json.load(f)
        self.assertEqual((said["from"]["epochs"], said["training"]["epochs"]), (8, 300))

    def test_the_only_worker_goes_on_from_its_checkpoint(self):
        self.assertGreater(self.run_with_deaths("fm", self.ALONE, ["worker"]), 0.9)
        self.assertGreater(self.run_with_deaths("logistic", self.ALONE, ["worker", "worker"]), 0.3)


if __name__ == "__main__":
    unittest.main()
