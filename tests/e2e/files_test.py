"""`files: DIR` of a job: shipped to every task by content, its virtual environment, and what comes back."""
import json
import os
import signal
import subprocess
import sys
import unittest

import harness

JOB = """\
name: {name}
files: {files}
command: [sh, -c, '{script}']
roles: {{worker: {{replicas: {replicas}{more}}}}}
"""


def cached(home):
    """Hashes in the state home's cache."""
    root = os.path.join(home.home, "cache", "blobs")
    return sorted(name for _, _, names in os.walk(root) for name in names)


class Files(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.src = self.home.path("src")
        os.mkdir(self.src)

    def put(self, name, content="", mode=0o644):
        path = os.path.join(self.src, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(content)
        os.chmod(path, mode)
        return path

    def job(self, script, replicas=1, more="", name="shipped"):
        text = JOB.format(name=name, files=self.src, script=script, replicas=replicas, more=more)
        return self.home.write("job.yaml", text)

    def outputs(self, job="shipped"):
        code, out, err = self.home.run("outputs", job, "--json")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def read_output(self, name):
        found = self.outputs()
        (dir_,) = [f"{f['task']}.{f['attempt']}" for f in found["files"] if f["path"] == name][:1]
        with open(os.path.join(found["directory"], dir_, name)) as f:
            return f.read()

    def test_tasks_see_their_own_copy_and_nothing_else(self):
        self.put("main.py", "print('hello')")
        self.put("bin/tool", "#!/bin/sh\necho tool", 0o755)
        self.put("data/big.bin", "x" * (2 << 20))
        self.put("secret.key", "hush")
        self.put(".shoalignore", "*.key\n/data/skip/\n")
        self.put("data/skip/no", "no")
        os.symlink("../main.py", os.path.join(self.src, "bin", "link.py"))
        os.makedirs(os.path.join(self.src, ".git"))
        self.put(".git/config", "x")
        script = ('find . | LC_ALL=C sort > "$SHOAL_OUTPUT/list"; ./bin/tool > "$SHOAL_OUTPUT/tool"; '
                  'python3 bin/link.py >> "$SHOAL_OUTPUT/tool"; echo mine >> main.py')
        code, _, err = self.home.run("run", self.job(script, replicas=2))
        self.assertEqual(code, 0, err)
        found = self.outputs()
        self.assertEqual([(f["task"], f["path"]) for f in found["files"]],
                         [("worker-0", "list"), ("worker-0", "tool"), ("worker-1", "list"), ("worker-1", "tool")])
        self.assertEqual(self.read_output("list").split(),
                         [".", "./.shoalignore", "./bin", "./bin/link.py", "./bin/tool", "./data", "./data/big.bin",
                          "./main.py"])
        self.assertEqual(self.read_output("tool"), "tool\nhello\n")
        with open(os.path.join(self.src, "main.py")) as f:
            self.assertEqual(f.read(), "print('hello')", "a task wrote into the user's own file")
        self.assertEqual(len(cached(self.home)), 4)
        # Only the records and what came back stays of the job.
        (job_dir,) = self.home.job_dirs()
        self.assertFalse(os.path.exists(os.path.join(job_dir, "files")))
        self.assertFalse(os.path.exists(os.path.join(job_dir, "scratch")))
        to = self.home.path("copied")
        code, _, err = self.home.run("outputs", "shipped", "--task", "worker-1", "--to", to)
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(os.listdir(os.path.join(to, "worker-1.0"))), ["list", "tool"])
        code, _, err = self.home.run("outputs", "shipped", "--task", "worker-1", "--to", to)
        self.assertEqual(code, 1)
        self.assertIn("exists already", err)

    def test_a_host_with_another_cache_fetches_once_over_the_connection(self):
        self.put("a", "one" * 100)
        self.put("b", "two" * 500_000)
        self.put("c", "")
        other = self.home.path("other-cache")
        script = 'cat a b c | sha256sum > "$SHOAL_OUTPUT/sum"'
        with open(self.job(script, replicas=3), "a") as f:
            f.write(f"env: {{SHOAL_CACHE: {other}}}\n")
        code, _, err = self.home.run("run", self.home.path("job.yaml"))
        self.assertEqual(code, 0, err)
        expected = subprocess.run("cat a b c | sha256sum", shell=True, cwd=self.src, stdout=subprocess.PIPE, text=True)
        self.assertEqual(self.read_output("sum"), expected.stdout)
        blobs = [n for _, _, names in os.walk(os.path.join(other, "blobs")) for n in names]
        self.assertEqual(sorted(blobs), cached(self.home))
        self.assertEqual(os.listdir(os.path.join(other, "tmp")), [])

    def test_an_attempt_begins_afresh_and_keeps_what_it_wrote(self):
        self.put("state", "0")
        script = ('cat state > "$SHOAL_OUTPUT/saw"; echo 1 > state; '
                  'if [ "$SHOAL_ATTEMPT" = 0 ]; then kill -9 $$; fi')
        code, _, err = self.home.run("run", self.job(script, more=", restart: {backoff: 10ms}"))
        self.assertEqual(code, 0, err)
        found = self.outputs()
        self.assertEqual([(f["attempt"], f["path"]) for f in found["files"]], [(0, "saw"), (1, "saw")])
        for attempt in (0, 1):
            with open(os.path.join(found["directory"], f"worker-0.{attempt}", "saw")) as f:
                self.assertEqual(f.read(), "0")

    def test_several_processes_of_a_task_share_one_copy(self):
        self.put("x", "1")
        script = 'pwd > "$SHOAL_OUTPUT/$LOCAL_RANK$SHOAL_LOCAL_RANK"; cat x'
        code, _, err = self.home.run("run", self.job(script, more=", processes: 3"))
        self.assertEqual(code, 0, err)
        found = self.outputs()
        places = set()
        for f in found["files"]:
            with open(os.path.join(found["directory"], "worker-0.0", f["path"])) as g:
                places.add(g.read())
        self.assertEqual((len(found["files"]), len(places)), (3, 1))

    def test_what_cannot_be_shipped_is_said_before_there_is_a_job(self):
        self.put("ok", "1")
        cases = {
            "link": (lambda p: os.symlink("/etc/passwd", p), "out of the directory"),
            "up": (lambda p: os.symlink("../..", p), "out of the directory"),
            "pipe": (os.mkfifo, "a device, a pipe or a socket"),
            "new\nline": (lambda p: open(p, "w").close(), "control character"),
        }
        for name, (make, sentence) in cases.items():
            path = os.path.join(self.src, name)
            make(path)
            code, _, err = self.home.run("run", self.job("true"))
            self.assertEqual(code, 2, (name, err))
            self.assertIn(sentence, err)
            self.assertIn(".shoalignore", err)
            os.remove(path)
        self.assertEqual(self.home.job_dirs(), [])
        code, _, err = self.home.run("run", self.job("true"), "--set", f"files={self.src}/nothing")
        self.assertEqual(code, 2, err)
        self.assertIn("expected a directory", err)

    def test_a_missing_program_is_named(self):
        self.put("ok", "1")
        file = self.home.write("job.yaml", f"name: shipped\nfiles: {self.src}\ncommand: [./nothing]\nroles: {{w: 1}}\n")
        code, _, err = self.home.run("run", file)
        self.assertEqual(code, 1, err)
        self.assertIn("./nothing", self.home.run("logs", "shipped")[1] + err)

    def test_killed_while_files_are_written_leaves_no_half_file(self):
        self.put("big", "y" * (3 << 20))
        faults = {"SHOAL_FAULTS": "blob.write=kill@2"}
        code, _, _ = self.home.run("run", self.job("true"), env=faults)
        self.assertEqual(code, -signal.SIGKILL)
        self.assertEqual(cached(self.home), [])
        code, _, err = self.home.run("run", self.job('wc -c < big > "$SHOAL_OUTPUT/n"'))
        self.assertEqual(code, 0, err)
        self.assertEqual(self.read_output("n").strip(), str(3 << 20))
        self.assertEqual(os.listdir(os.path.join(self.home.home, "cache", "tmp")), [])

    def test_a_blob_that_was_written_to_is_not_used_again(self):
        self.put("big", "z" * (2 << 20))
        self.assertEqual(self.home.run("run", self.job("true", name="first"))[0], 0)
        (blob,) = cached(self.home)
        path = os.path.join(self.home.home, "cache", "blobs", blob[:2], blob)
        os.chmod(path, 0o644)
        with open(path, "r+") as f:
            f.write("damaged")
        code, _, err = self.home.run("run", self.job('sha256sum < big > "$SHOAL_OUTPUT/sum"'))
        self.assertEqual(code, 0, err)
        self.assertEqual(self.read_output("sum").split()[0], blob)


class Environment(unittest.TestCase):
    """requirements.txt of a package that lies among the files: no index is needed."""

    def setUp(self):
        if subprocess.run([sys.executable, "-c", "import venv, ensurepip"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("python3-venv is not installed")
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.src = self.home.path("src")
        os.mkdir(self.src)
        self.home.write("src/shoalpkg-1.0-py3-none-any.whl", "")
        make_wheel(os.path.join(self.src, "shoalpkg-1.0-py3-none-any.whl"))

    def run_job(self, requirements, replicas=2, name="env"):
        self.home.write("src/requirements.txt", requirements)
        self.home.write("src/main.py", "import shoalpkg, sys, os\n"
                        "open(os.environ['SHOAL_OUTPUT'] + '/env', 'w').write(f'{shoalpkg.ANSWER} {sys.prefix}')\n")
        file = self.home.write("job.yaml", f"name: {name}\nfiles: {self.src}\ncommand: [python, main.py]\n"
                               f"roles: {{worker: {replicas}}}\n")
        return self.home.run("run", file, seconds=110)

    def test_built_once_and_shared(self):
        code, out, err = self.run_job("./shoalpkg-1.0-py3-none-any.whl\n")
        self.assertEqual(code, 0, err + out)
        envs = [n for n in os.listdir(os.path.join(self.home.home, "cache", "envs")) if "." not in n]
        self.assertEqual(len(envs), 1)
        _, log, _ = self.home.run("logs", "env")
        self.assertEqual(log.count("shoal: building the virtual environment"), 1, log)
        found = json.loads(self.home.run("outputs", "env", "--json")[1])
        for f in found["files"]:
            with open(os.path.join(found["directory"], f"{f['task']}.0", "env")) as g:
                self.assertEqual(g.read(), "42 " + os.path.join(self.home.home, "cache", "envs", envs[0]))
        # Again: nothing is built.
        code, _, err = self.run_job("./shoalpkg-1.0-py3-none-any.whl\n", name="again")
        self.assertEqual(code, 0, err)
        self.assertNotIn("building", self.home.run("logs", "again")[1])

    def test_a_build_that_fails_is_tried_once_and_says_what_to_do(self):
        code, _, err = self.run_job("./nothing-1.0-py3-none-any.whl\n")
        self.assertEqual(code, 1)
        _, log, _ = self.home.run("logs", "env")
        self.assertIn("cannot be built", log)
        self.assertLessEqual(log.count("shoal: building the virtual environment"), 1, log)


def make_wheel(path):
    import zipfile
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("shoalpkg.py", "ANSWER = 42\n")
        info = "shoalpkg-1.0.dist-info/"
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: shoalpkg\nVersion: 1.0\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(info + "RECORD", "shoalpkg.py,,\n" + "".join(f"{info}{n},,\n" for n in ("METADATA", "WHEEL", "RECORD")))


if __name__ == "__main__":
    unittest.main()
