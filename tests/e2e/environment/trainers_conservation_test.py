"""Built-in trainers: what was trained is what was counted, times the epochs, whoever dies, or the job does not succeed."""
import json
import os
import random
import re
import signal
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
import harness  # noqa: E402

EXAMPLES = 20_000
WORDS = 120_000
RESTART = "restart: {when: transient, limit: 3, scope: task}"
JOB = """\
name: conserved
framework: shoal
learn: {{{learn}}}
data: {{train: {{source: "{train}", format: {format}, shard_by: worker}}}}
roles:
  server: {{replicas: 1, follows: worker{server}}}
  worker: {{replicas: 2, {restart}{worker}}}
checkpoint: {{every: 300ms, keep: 2}}
limits: {{gather: 20s, deadline: 2m, stop_grace: 2s}}
outputs: {{model: "{model}"}}
"""


class Conservation(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.model = self.home.path("model")

    def examples(self):
        rng = random.Random(1)
        lines = (f"{rng.randrange(2)} {1 + rng.randrange(30)}:1 {31 + rng.randrange(30)}:1\n" for _ in range(EXAMPLES))
        return self.home.write("train.svm", "".join(lines))

    def words(self):
        rng = random.Random(1)
        lines = (" ".join(f"w{rng.randrange(300)}" for _ in range(12)) + "\n" for _ in range(WORDS // 12))
        return self.home.write("train.txt", "".join(lines))

    def job(self, algorithm, epochs, worker="", server=""):
        words = algorithm == "word2vec"
        learn = f"algorithm: {algorithm}, epochs: {epochs}, threads: 1" + (", dim: 16, min_count: 1" if words else "")
        return self.home.write("job.yaml", JOB.format(
            learn=learn, train=self.words() if words else self.examples(), format="text" if words else "libsvm",
            restart=RESTART, worker=worker, server=server, model=self.model))

    def result(self, out):
        events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        return next(e for e in reversed(events) if "drained" in json.dumps(e))

    def interrupt(self, algorithm):
        job = self.home.start("run", self.job(algorithm, 100_000), "--json")
        self.assertTrue(harness.poll_until(lambda: re.search(r'"step": ?[1-9]', harness.said(job)), 60), harness.said(job))
        job.send_signal(signal.SIGINT)
        self.assertEqual(job.wait(timeout=60), 130, harness.said(job))
        done = json.loads([line for line in harness.said(job).splitlines() if '"done"' in line][-1])
        self.assertEqual((done["state"], done["stopped_by"], done["output"]), ("cancelled", "Ctrl-C", self.model))

    def test_word2vec_that_is_interrupted_says_where_its_model_is(self):
        self.interrupt("word2vec")

    def test_logistic_that_is_interrupted_says_where_its_model_is(self):
        self.interrupt("logistic")

    def assert_conserved(self, said, unit, count, epochs):
        text = json.dumps(self.result(said))
        for name, value in ((f"{unit}_trained", count * epochs), (unit, count), ("epochs", epochs)):
            self.assertIn(f'"{name}": {value}', text)

    def test_the_result_tells_both_numbers(self):
        for algorithm in ("logistic", "fm", "word2vec"):
            words = algorithm == "word2vec"
            data = self.words() if words else self.examples()
            more = ["--min-count", "1", "--dim", "16"] if words else []
            for shape in ([], ["--workers", "2", "--servers", "1", "--threads", "1"]):
                code, out, err = self.home.run("train", algorithm, "--data", data, "--output", self.model, "--epochs", "3", "--json",
                                               *more, *shape)
                self.assertEqual(code, 0, err)
                self.assert_conserved(out, "words" if words else "examples", WORDS if words else EXAMPLES, 3)

    def run_and_signal(self, algorithm, epochs, number):
        """Sends a signal to one worker's program while it trains: (exit code, what was said)."""
        process = self.home.start("run", self.job(algorithm, epochs), "--json")
        self.assertTrue(harness.poll_until(lambda: '"phase":"train"' in harness.said(process) or process.poll() is not None,
                                           60 * harness.PATIENCE))
        # Of the processes that are `shoal learn worker`, one that is the parent of none of them: the program itself.
        found = [p for p in self.home.processes() if p.kind == "worker"]
        programs = [p for p in found if p.pid not in {q.ppid for q in found}]
        self.assertTrue(programs, harness.said(process)[-2000:])
        os.kill(programs[-1].pid, number)
        process.wait(timeout=120 * harness.PATIENCE)
        self.assertEqual(self.home.leftovers(), [])
        return process.returncode, harness.said(process)

    def test_a_killed_worker_trains_its_part_to_the_end(self):
        for algorithm, unit, count, epochs in (("logistic", "examples", EXAMPLES, 150), ("word2vec", "words", WORDS, 40)):
            code, said = self.run_and_signal(algorithm, epochs, signal.SIGKILL)
            self.assertEqual(code, 0, said[-3000:])
            self.assert_conserved(said, unit, count, epochs)

    def test_a_worker_that_somebody_told_to_end_comes_again_and_trains_its_part(self):
        """It saves and ends early, by the signal: to the job that is a loss."""
        for algorithm, unit, count, epochs in (("logistic", "examples", EXAMPLES, 150), ("word2vec", "words", WORDS, 40)):
            code, said = self.run_and_signal(algorithm, epochs, signal.SIGTERM)
            self.assertEqual(code, 0, said[-3000:])
            self.assert_conserved(said, unit, count, epochs)

    def test_elastic_workers_are_refused_and_elastic_servers_are_not(self):
        for algorithm in ("logistic", "word2vec"):
            for command in ("run", "plan"):
                code, _, err = self.home.run(command, self.job(algorithm, 2, worker=", max: 4"))
                self.assertEqual(code, 2, err)
                self.assertIn("roles.worker: got from 2 to 4 tasks", err)
            code, _, err = self.home.run("plan", self.job(algorithm, 2, server=", max: 2"))
            self.assertEqual(code, 0, err)
        self.assertEqual(self.home.job_dirs(), [])

    def test_scale_refuses_workers_of_a_running_training(self):
        process = self.home.start("run", self.job("logistic", 100_000), "--json")
        self.assertTrue(harness.poll_until(lambda: '"phase":"train"' in harness.said(process) or process.poll() is not None,
                                           60 * harness.PATIENCE))
        code, _, err = self.home.run("scale", "conserved", "worker=3")
        self.assertEqual(code, 1, err)
        self.assertIn("its job file gives the role neither 'min' nor 'max'", err)
        self.assertEqual(self.home.run("stop", "conserved")[0], 0)
        process.wait(timeout=60 * harness.PATIENCE)
        self.assertEqual(self.home.leftovers(), [])


if __name__ == "__main__":
    unittest.main()
