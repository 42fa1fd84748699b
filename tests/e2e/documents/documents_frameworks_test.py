"""Documented jobs of other frameworks, as printed, each where its framework is here: script/frameworks installs them all, and
script/test --matrix runs this with them."""
import glob
import os
import shutil
import subprocess
import sys
import unittest

import places
import sandbox
from sandbox import harness

BUILD = os.path.dirname(os.path.abspath(harness.DEFAULT_BINARY))
# Where script/frameworks makes the environments of what Debian does not have.
ENVIRONMENTS = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "shoal", "frameworks")


def imports(module, *python):
    return any(subprocess.run([one, "-c", "import " + module], stderr=subprocess.DEVNULL, check=False).returncode == 0
               for one in python if shutil.which(one))


def missing(text):
    """What a command needs and is not here; empty: it can run."""
    torch = os.path.join(ENVIRONMENTS, "pytorch", "bin", "python3")
    needs = {"examples/mpi": ("mpirun and mpicc", shutil.which("mpirun") and shutil.which("mpicc")),
             "examples/pytorch": ("PyTorch", imports("torch", "python3", torch)),
             "examples/embedding": ("numpy and the Python module of this build", imports("numpy", "/usr/bin/python3") and
                                    glob.glob(os.path.join(BUILD, "python", "shoal", "ps", "_core*.so"))),
             "examples/embedding/job.yaml": ("PyTorch", imports("torch", "python3", torch))}
    return " and ".join(what for place, (what, there) in needs.items() if place in text and not there)


class DocumentsFrameworksTest(sandbox.DocumentTest):
    def test_commands_run_as_printed(self):
        box = self.sandbox()
        os.unlink(os.path.join(box.root, "examples"))  # paths in job files lead to build/release
        shutil.copytree(os.path.join(harness.SOURCE, "examples"), os.path.join(box.root, "examples"))
        os.symlink(os.path.join(BUILD, "python"), os.path.join(box.root, "build/release/python"))
        if os.path.isdir(os.path.join(ENVIRONMENTS, "pytorch")):
            box.exports["PATH"] = os.pathsep.join([box.home.path("bin"), os.path.join(ENVIRONMENTS, "pytorch", "bin"), os.environ["PATH"]])
        found = {command.text: command for _, commands in places.commands(harness.SOURCE, box, "frameworks") for command in commands}
        self.assertGreater(len(found), 3)
        for command in found.values():
            with self.subTest(where=f"{command.page}:{command.line}", command=command.text):
                absent = missing(command.text)
                if absent:
                    self.skipTest(f"there is no {absent}")
                code, said = box.run(command.text)
                self.assertEqual(code, 0, said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
