"""What is said of outputs that nothing was written to: a job that succeeded does not claim them. SHOAL_BIN names the binary."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

JOB = """\
name: saves
framework: generic
outputs: {model: @OUT@}
roles: {worker: {command: [sh, -c, '@COMMAND@']}}
"""


class Outputs(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.out = self.home.path("results", "out")

    def run_job(self, command):
        path = self.home.write("job.yaml", JOB.replace("@OUT@", self.out).replace("@COMMAND@", command))
        code, out, err = self.home.run("run", path)
        self.assertEqual(code, 0, out + err)
        return out + err

    def test_one_that_was_not_written_is_not_reported_as_saved(self):
        said = self.run_job("true")
        self.assertNotIn("the model is in", said)
        self.assertIn(f"outputs.model: {self.out} does not exist on this machine", said)
        self.assertIn("does not exist on this machine", self.home.run("show", "saves")[1])

    def test_one_that_was_written_is(self):
        said = self.run_job('mkdir -p "$SHOAL_OUTPUT" && touch "$SHOAL_OUTPUT/file"')
        self.assertIn(f"the model is in {self.out}", said)
        self.assertNotIn("does not exist", said)


if __name__ == "__main__":
    unittest.main()
