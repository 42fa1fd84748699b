"""A training job whose workers reach their server over UCX, by its TCP and by its shared memory."""
import json
import os
import random
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import harness  # noqa: E402


JOB = """\
name: by-ucx
framework: shoal
env: {{UCX_TLS: "{ways}"}}
learn: {{algorithm: logistic, threads: 1, transport: {transport}}}
data:
  train: {{source: "{train}", format: libsvm, shard_by: worker}}
  test: {{source: "{test}", format: libsvm, shard_by: worker}}
roles:
  server: {{replicas: 1, follows: worker}}
  worker: {{replicas: 2}}
limits: {{gather: 20s, deadline: 1m, stop_grace: 2s}}
outputs: {{model: "{model}"}}
"""


def write_examples(path, count, seed):
    """`count` lines; the label is the parity of the first of two classes, one in twenty is wrong."""
    rng = random.Random(seed)
    with open(path, "w", encoding="ascii") as f:
        for _ in range(count):
            a, b = rng.randrange(20), rng.randrange(20)
            f.write(f"{int((a % 2 == 0) != (rng.randrange(20) == 0))} {1 + a}:1 {21 + b}:1\n")


class Ucx(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.train, self.test = self.home.path("train.svm"), self.home.path("test.svm")
        write_examples(self.train, 6000, 1)
        write_examples(self.test, 2000, 2)

    def run_job(self, ways, transport="ucx"):
        return self.home.run("run", self.home.write("job.yaml", JOB.format(
            ways=ways, transport=transport, train=self.train, test=self.test, model=self.home.path("model"))), "--json")

    def test_workers_reach_the_server_by_every_way(self):
        for ways in ("tcp,self", "sysv,self"):
            with self.subTest(ways):
                code, out, err = self.run_job(ways)
                if code != 0 and ("UCX cannot be opened" in err or "built without UCX" in err):
                    self.skipTest(err.strip().splitlines()[-1])
                self.assertEqual(code, 0, err)
                self.assertGreater(json.loads(out.strip().splitlines()[-1])["auc"], 0.9)

    def test_a_way_that_is_not_there_is_said(self):
        code, _, err = self.run_job("rocm")
        self.assertEqual(code, 1, err)
        self.assertIn("transport ucx", err)

    def test_a_transport_that_there_is_not(self):
        code, _, err = self.run_job("tcp,self", "pigeons")
        self.assertEqual(code, 2, err)
        self.assertIn("auto, ucx", err)


if __name__ == "__main__":
    unittest.main()
