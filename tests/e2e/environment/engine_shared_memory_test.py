"""Shared memory that programs leave behind, and files that they name by host and process. SHOAL_BIN names the binary."""
import glob
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

# The programs do not name /dev/shm in their commands: then they would see the machine's.
LEAVES = """\
import os, signal
with open("/dev/shm/left-" + os.environ["SHOAL_JOB_ID"], "ab") as f:
    f.write(b"x" * (1 << 20))
print("number", os.getpid(), flush=True)
%s
"""
JOB = """\
name: leaves
framework: generic
roles: {worker: {replicas: 2, command: [python3, leaves.py]}}
"""


class SharedMemory(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        modes = [one["mode"] for one in json.loads(self.home.run("doctor", "--json")[1])["findings"] if one["name"] == "processes"]
        if modes == ["guard"]:
            self.skipTest("there are no namespaces here")
        if self.home.root.startswith("/dev/shm"):
            self.skipTest("the tests' own files are in /dev/shm")

    def write(self, then):
        self.home.write("leaves.py", LEAVES % then)
        return self.home.write("job.yaml", JOB.replace("leaves.py", self.home.path("leaves.py")))

    def left(self):
        return [path for path in glob.glob("/dev/shm/*") + glob.glob("/dev/shm/*/*") if "leaves-" in path]

    def test_what_programs_leave_goes_with_the_job(self):
        code, out, err = self.home.run("run", self.write(""))
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.left(), [])

    def test_a_stop_at_once_leaves_none(self):
        process = self.home.start("run", self.write("signal.pause()"))
        self.assertTrue(harness.poll_until(self.left, 30 * harness.PATIENCE))
        self.assertEqual(self.home.run("stop", "leaves", "--now")[0], 0)
        process.wait(timeout=30 * harness.PATIENCE)
        harness.poll_until(lambda: not self.left(), 10 * harness.PATIENCE)
        self.assertEqual(self.left(), [])

    def test_a_killed_launcher_leaves_none_after_the_job(self):
        process = self.home.start("run", self.write("signal.pause()"))
        self.assertTrue(harness.poll_until(self.left, 30 * harness.PATIENCE))
        launcher = next(one for one in self.home.processes() if one.kind == "launcher")
        os.kill(launcher.pid, 9)
        self.assertEqual(self.home.run("stop", "leaves", "--now")[0], 0)
        process.wait(timeout=30 * harness.PATIENCE)
        harness.poll_until(lambda: not self.left(), 10 * harness.PATIENCE)
        self.assertEqual(self.left(), [])

    def test_programs_have_different_numbers(self):
        code, out, err = self.home.run("run", self.write(""))
        self.assertEqual(code, 0, out + err)
        numbers = [line.split("number ")[1].split()[0] for line in (out + err).splitlines() if "number " in line]
        self.assertEqual(len(numbers), 2, out + err)
        self.assertNotEqual(numbers[0], numbers[1])

    def test_a_program_that_names_it_sees_the_machines(self):
        path = f"/dev/shm/shoal-test-{os.getpid()}"
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        text = JOB.replace("[python3, leaves.py]", f"[sh, -c, 'echo kept >> {path}']")
        code, out, err = self.home.run("run", self.home.write("job.yaml", text))
        self.assertEqual(code, 0, out + err)
        with open(path, encoding="utf-8") as f:
            self.assertEqual(f.read(), "kept\nkept\n")


if __name__ == "__main__":
    unittest.main()
