"""`shoal simulate`: a log of jobs through two policies, generated logs, and what is wrong in either file."""
import json
import unittest

import harness

POLICY = """\
flavors: {gpu: {}}
queues: {default: {}}
"""
EVENTS = """\
{"t":0,"event":"machines","flavor":"gpu","gpu":4}
{"t":0,"event":"submit","job":"a","gpu":3,"run":100,"expected":100}
{"t":1,"event":"submit","job":"b","gpu":4,"run":100,"expected":100}
{"t":2,"event":"submit","job":"c","gpu":1,"run":50,"expected":50}
"""


class Simulate(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.policy = self.home.write("policy.yaml", POLICY)
        self.events = self.home.write("events.jsonl", EVENTS)

    def test_backfill_beside_first_in_first_out(self):
        code, out, err = self.home.run("simulate", self.events, "--policy", self.policy)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("1 jobs wait less, 0 wait longer", out)
        code, out, _ = self.home.run("simulate", self.events, "--policy", self.policy, "--json")
        before, after = json.loads(out)["policies"]
        self.assertEqual(code, 0)
        self.assertLess(after["mean_wait"], before["mean_wait"])
        self.assertEqual((after["ended"], after["jobs"]), (3, 3))

    def test_more_machines(self):
        code, out, _ = self.home.run("simulate", self.events, "--policy", self.policy, "--against", "", "--json", "--machines", "gpu.gpu=+4")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(out)["policies"][0]["mean_wait"], 0)

    def test_a_generated_log_is_the_same_each_time_and_can_be_simulated(self):
        logs = [self.home.run("simulate", "--generate", "cluster", "--jobs", "100", "--seed", "5") for _ in range(2)]
        self.assertEqual(logs[0], logs[1])
        self.assertEqual(logs[0][1].count('"submit"'), 100)
        teams = "".join(f"  team-{i}: {{}}\n" for i in range(10))
        policy = self.home.write("teams.yaml", "default_queue: team-0\nflavors: {gpu: {}}\nqueues:\n" + teams)
        svg = self.home.path("waits.svg")
        code, out, err = self.home.run("simulate", self.home.write("e.jsonl", logs[0][1]), "--policy", policy, "--svg", svg)
        self.assertEqual((code, err), (0, ""))
        with open(svg, encoding="utf-8") as text:
            self.assertIn("polyline", text.read())

    def test_mistakes_name_their_place(self):
        bad = self.home.write("bad.yaml", "flavors: {gpu: {}}\nqueues: {default: {wieght: 2}}\n")
        code, out, err = self.home.run("simulate", self.events, "--policy", bad)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("bad.yaml:2:20: queues.default: got the unknown field 'wieght'; did you mean 'weight'?", err)
        lines = self.home.write("bad.jsonl", EVENTS + '{"t":3,"event":"submit","job":"d","gpus":1}\n')
        code, _, err = self.home.run("simulate", lines, "--policy", self.policy)
        self.assertEqual(code, 2)
        self.assertIn("bad.jsonl:5: got the unknown field 'gpus'; did you mean 'gpu'?", err)
        lines = self.home.write("lost.jsonl", '{"t":3,"event":"submit","job":"d","queue":"lost"}\n')
        self.assertEqual(self.home.run("simulate", lines, "--policy", self.policy)[0], 4)
        self.assertEqual(self.home.run("simulate")[0], 2)


if __name__ == "__main__":
    unittest.main()
