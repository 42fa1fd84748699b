"""Standard output that cannot be written (/dev/full is a disk without room) is a message and an exit code, never success; a
reader that has gone is neither."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

JOB = 'name: hello\ncommand: [sh, -c, "echo hello; echo word"]\n'
VECTORS = "3 2\nking 1 0\nqueen 0.9 0.1\nsea 0 1\n"


class OutputFullTest(harness.JobsTest):
    def to(self, device, *arguments):
        """Runs `shoal ARGUMENTS` with standard output on a device: exit code, standard error."""
        with open(device, "wb") as out:
            done = subprocess.run([self.home.binary, *arguments], stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.PIPE, env=self.home.environ(), cwd=self.home.root, check=False,
                                  timeout=60 * harness.PATIENCE)
        return done.returncode, done.stderr.decode()

    def assert_told(self, *arguments):
        code, err = self.to("/dev/full", *arguments)
        self.assertNotIn(code, (0, -6), (arguments, err))
        self.assertIn("cannot write to standard output: No space left on device", err, arguments)
        return err

    def test_commands_that_need_no_job(self):
        job = self.home.write("job.yaml", JOB)
        image = self.home.write("image.yaml", JOB + "image: debian\n")
        vectors = self.home.write("vectors.txt", VECTORS)
        for arguments in (["version"], ["--version"], ["--help"], ["help"], ["jobs", "--help"], ["completion", "bash"],
                          ["doctor", "--json"], ["plan", job], ["plan", job, "--json"], ["plan", job, "--env", "task-0"],
                          ["plan", image, "--engine", "docker"], ["import", job], ["import", job, "--json"],
                          ["nearest", vectors, "king"], ["analogy", vectors, "king", "queen", "sea"],
                          ["submit-dmlc", "--num-workers", "1", "--print-job", "--", "true"]):
            self.assert_told(*arguments)
            self.assertEqual(self.to("/dev/null", *arguments)[0] in (0, 1), True, arguments)

    def test_a_job_that_cannot_be_shown(self):
        job = self.home.write("job.yaml", JOB)
        for mode in ([], ["--json"]):
            err = self.assert_told("run", job, *mode)
            self.assertIn("succeeded", err)
            self.assertEqual(self.home.leftovers(), [])
        code, out, err = self.home.run("jobs", "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual([json.loads(line)["state"] for line in out.splitlines()], ["succeeded"] * 2)
        name = json.loads(out.splitlines()[0])["id"]
        for arguments in (["jobs"], ["jobs", "--json"], ["jobs", "--ids"], ["show", name], ["show", name, "--json"],
                          ["logs", name], ["logs", name, "task-0"], ["logs", name, "--json"], ["outputs", name, "--json"],
                          ["stop", name], ["stop", name, "--json"], ["jobs", "--prune", "0"]):
            self.assert_told(*arguments)

    def test_predictions(self):
        lines = "".join(f"{i % 2} 1:{i % 2} 2:1\n" for i in range(200))
        data = self.home.write("data.svm", lines)
        model = self.home.path("model")
        code, _, err = self.home.run("train", "logistic", "--data", data, "--output", model, "--quiet")
        self.assertEqual(code, 0, err)
        self.assert_told("predict", model, "--data", data)
        self.assert_told("predict", model, "--data", data, "--output", "-")
        code, out, err = self.home.run("predict", model, "--data", data, "--output", "-")
        self.assertEqual((code, len(out.splitlines())), (0, 200), err)

    def test_a_closed_standard_output(self):
        """Commands with an effect say by their exit code whether they had it, as cp and ssh do; those that print a result fail, as
        sort does."""
        def closed(*arguments):
            code, out, err = self.home.run(*arguments, preexec_fn=lambda: os.close(1))
            self.assertEqual(out, "")
            return code, err
        job = self.home.write("job.yaml", JOB)
        failing = self.home.write("failing.yaml", "name: failing\ncommand: [sh, -c, 'echo hello; exit 3']\n")
        for mode in ([], ["--json"], ["--quiet"]):
            self.assertEqual(closed("run", job, *mode), (0, ""), mode)
            self.assertEqual(closed("run", failing, *mode)[0], 1, mode)
        data = self.home.write("data.svm", "".join(f"{i % 2} 1:{i % 2} 2:1\n" for i in range(200)))
        model = self.home.path("model")
        self.assertEqual(closed("train", "logistic", "--data", data, "--output", model), (0, ""))
        self.assertEqual(closed("predict", model, "--data", data, "--output", self.home.path("predictions")), (0, ""))
        jobs = [json.loads(line) for line in self.home.run("jobs", "--json")[1].splitlines()]
        name = next(job["id"] for job in jobs if job["name"] == "hello")
        self.assertEqual(closed("stop", name), (0, ""))
        for command in (["jobs"], ["show", name], ["logs", name], ["plan", job], ["predict", model, "--data", data],
                        ["predict", model, "--data", data, "--output", "-"]):
            code, err = closed(*command)
            self.assertEqual(code, 1, command)
            self.assertIn("cannot write to standard output", err)

    def test_a_reader_that_has_gone_is_no_error(self):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([self.home.binary, "completion", "bash"], stdout=write, stderr=subprocess.PIPE,
                              env=self.home.environ(), check=False, timeout=60 * harness.PATIENCE)
        os.close(write)
        self.assertEqual((done.returncode, done.stderr), (0, b""))


if __name__ == "__main__":
    unittest.main()
