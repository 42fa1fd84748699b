"""Numbers that programs print as `shoal.metric` lines: kept, listed, drawn and plotted. SHOAL_BIN names the binary."""
import json
import unittest
import xml.etree.ElementTree

import harness

JOB = """\
name: curve
roles:
  worker:
    replicas: 2
    command: [sh, -c, 'for i in 1 2 3 4 5 6 7 8 9 10; do echo "shoal.metric {\\"step\\": $i, \\"loss\\": 0.$((9 - i / 2))}"; sleep 0.05; done']
"""


class CurvesTest(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        code, out, err = self.home.run("run", self.home.write("job.yaml", JOB))
        self.assertEqual(code, 0, out + err)

    def run_ok(self, *arguments):
        code, out, err = self.home.run(*arguments)
        self.assertEqual(code, 0, err)
        return out

    def test_every_number_is_kept(self):
        series = {one["name"]: one for one in json.loads(self.run_ok("show", "curve", "--json"))["series"]}
        for name in ("worker-0.loss", "worker-1.loss", "worker-0.step", "worker-1.step"):
            self.assertEqual(series[name]["points"], 10, name)
            self.assertGreater(series[name]["last_ms"], series[name]["first_ms"])

    def test_curves_are_drawn_and_plotted(self):
        drawn = self.run_ok("show", "curve", "--curves")
        self.assertIn("loss", drawn.splitlines()[0])
        self.assertIn("mean of 2 tasks", drawn)
        self.assertTrue(all(len(line) <= 80 for line in drawn.splitlines()), drawn)
        svg = self.home.path("curves.svg")
        self.run_ok("plot", "curve", "--metric", "loss", "--metric", "step", "-o", svg)
        root = xml.etree.ElementTree.parse(svg).getroot()
        lines = root.iter("{http://www.w3.org/2000/svg}polyline")
        self.assertEqual(len(list(lines)), 2)

    def test_an_unknown_metric_names_the_others(self):
        code, _, err = self.home.run("show", "curve", "--metric", "los")
        self.assertEqual(code, 4)
        self.assertIn("loss, ", err)


if __name__ == "__main__":
    unittest.main()
