"""What imported manifests mean to their programs, run by the real binary: variables, references, ends.
SHOAL_BIN names the binary."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

PYTORCHJOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: nodes}
spec:
  nprocPerNode: "2"
  pytorchReplicaSpecs:
    Master: {template: {spec: {containers: [{name: pytorch, env: [{name: KEY, value: 'a$$b'}], command: %s}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, env: [{name: KEY, value: 'a$$b'}], command: %s}]}}}
"""


# So that the master's end does not stop workers that have still to print.
ALL = ("--set", "success={all: [master, worker]}")


class ImportsMeaningTest(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)

    def run_text(self, text, *arguments):
        code, out, err = self.home.run("run", self.home.write("f.yaml", text), *arguments, seconds=60)
        self.assertNotEqual(code, -9, out + err)
        self.assertEqual(self.home.leftovers(), [])
        return code, out, err

    def test_a_torchrun_in_a_shell_finds_the_other_nodes(self):
        script = """[bash, -c, 'torchrun() { echo "node $PET_NODE_RANK of $PET_NNODES x $PET_NPROC_PER_NODE""" \
                 """ at $PET_MASTER_ADDR:$PET_MASTER_PORT is $MASTER_ADDR:$MASTER_PORT world $WORLD_SIZE"; };""" \
                 """ cd / && torchrun train.py']"""
        code, out, err = self.run_text(PYTORCHJOB % (script, script), *ALL)
        self.assertEqual(code, 0, out + err)
        for task, rank in (("master-0", 0), ("worker-0", 1), ("worker-1", 2)):
            self.assertRegex(out, rf"{task} +\| node {rank} of 3 x 2 at (\S+) is \1 world 6")

    def test_references_are_the_kubelets(self):
        code, out, err = self.run_text(PYTORCHJOB % (("[echo, 'rank=$(RANK)', $(KEY), $$(KEY), $(NONE)]",) * 2), *ALL)
        self.assertEqual(code, 0, out + err)
        for task, rank in (("master-0", 0), ("worker-0", 1), ("worker-1", 2)):
            self.assertRegex(out, rf"{task} +\| rank={rank} a\$b \$\(KEY\) \$\(NONE\)")
        self.assertIn("$(NONE) stays as it is", err)

    def test_a_program_that_does_not_exist_ends_the_job_at_once(self):
        for command in ("[no-such-program]", "[sh, -c, no-such-program]"):
            code, out, err = self.run_text(PYTORCHJOB % ((command,) * 2))
            self.assertEqual(code, 1, out + err)
            self.assertRegex(out + err, "does not exist|not found|no such program|No such file")
            self.assertNotIn("of 1000", out + err)


if __name__ == "__main__":
    unittest.main()
