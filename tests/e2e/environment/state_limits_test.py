"""Small limits of open files and stacks. SHOAL_BIN names the binary."""
import os
import resource
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

SOFT, HARD = 64, 4096


def limit():
    resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT, HARD))


def small_stack():
    resource.setrlimit(resource.RLIMIT_STACK, (64 << 10, 64 << 10))


class LimitsTest(harness.JobsTest):
    def test_a_small_stack_is_enough_and_programs_keep_the_users_limit(self):
        job = self.home.write("job.yaml", "name: small\ncommand: [sh, -c, 'ulimit -s']\nroles: {worker: {replicas: 2}}\n")
        code, out, err = self.home.run("run", job, seconds=60, preexec_fn=small_stack)
        self.assertEqual(code, 0, out + err)
        self.assertEqual(sorted(line.split(" | ")[1] for line in out.splitlines() if " | " in line), ["64", "64"])
        self.assertEqual(self.home.leftovers(), [])
        deep = self.home.write("deep.yaml", "name: deep\nx: " + "[" * 5000 + "]" * 5000 + "\n")
        code, _, err = self.home.run("plan", deep, preexec_fn=small_stack)
        self.assertEqual(code, 2, err)
        self.assertIn("deep.yaml", err)

    def test_signals_reach_a_command_with_a_small_stack(self):
        job = self.home.write("job.yaml", "name: small\ncommand: [sh, -c, 'echo up; exec sleep 60']\n"
                                          "roles: {worker: {replicas: 1}}\nlimits: {stop_grace: 1s}\n")
        run = self.home.start("run", job, preexec_fn=small_stack)
        self.assertTrue(harness.poll_until(lambda: "| up" in harness.said(run), 30 * harness.PATIENCE), harness.said(run))
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(30 * harness.PATIENCE), 130, harness.said(run))
        self.assertEqual(self.home.leftovers(), [])

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to hide /dev/null")
    def test_a_machine_without_dev_null(self):
        job = self.home.write("job.yaml", "name: bare\ncommand: [sh, -c, 'true']\nroles: {worker: {replicas: 1}}\n")
        hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev && exec "$@"', "-"]
        done = subprocess.run([*hidden, self.home.binary, "run", job], env=self.home.environ(None), capture_output=True, text=True,
                              timeout=60 * harness.PATIENCE, check=False, stdin=subprocess.DEVNULL)
        self.assertIn("this machine has no /dev/null", done.stderr)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.home.leftovers(), [])

    def test_more_tasks_than_descriptors_and_programs_with_the_users_limit(self):
        job = self.home.write("job.yaml", "name: many\ncommand: [sh, -c, 'ulimit -Sn; echo \"${SHOAL_OPEN_FILES-none}\"']\n"
                                          "roles: {worker: {replicas: 80}}\n")
        code, out, err = self.home.run("run", job, seconds=120, preexec_fn=limit)
        self.assertEqual(code, 0, out + err)
        lines = [line.split(" | ")[1] for line in out.splitlines() if " | " in line]
        self.assertEqual(sorted(set(lines)), [str(SOFT), "none"])
        self.assertEqual(len(lines), 160)
        self.assertEqual(self.home.leftovers(), [])

    def test_trainers_with_more_workers_than_a_server_has_descriptors(self):
        text = self.home.write("text.txt", "one two three four five six seven\n" * 400)
        code, out, err = self.home.run(
            "train", "word2vec", "--data", text, "--output", self.home.path("vectors"), "--workers", "24", "--servers",
            "1", "--dim", "4", "--epochs", "1", "--min-count", "1", seconds=180,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (48, HARD)))
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.home.leftovers(), [])

    def test_too_few_descriptors(self):
        job = self.home.write("job.yaml", "name: few\ncommand: ['true']\nroles: {worker: {replicas: 1}}\n")
        codes = set()
        for most in range(8, 64, 4):
            code, out, err = self.home.run("run", job, seconds=60, preexec_fn=lambda n=most: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
            said = f"{most} descriptors: code {code}\n{out}{err}"
            self.assertIn(code, (0, 1, 5), said)
            self.assertNotIn("terminate called", out + err)
            if code != 0:
                self.assertRegex(out + err, "Too many open files|ulimit -n", said)
            codes.add(code)
        self.assertIn(0, codes)
        self.assertIn(1, codes)
        self.assertEqual(self.home.leftovers(), [])

    def test_too_few_descriptors_are_no_fault_of_the_data(self):
        data = self.home.write("t.csv", "y,a\n" + "".join(f"{i % 2},{i}\n" for i in range(100)))
        refused = 0
        for most in range(8, 48):
            code, out, err = self.home.run("train", "linear", "--data", data, "--label", "y", "--output", self.home.path("model"), seconds=60,
                                           preexec_fn=lambda n=most: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
            self.assertNotIn("put it back", out + err)
            if "Too many open files" in err:
                refused += 1
                self.assertRegex(err, f"raise `ulimit -n`, which is {most}\\b")
        self.assertGreater(refused, 2)
        self.assertEqual(self.home.leftovers(), [])

    def test_too_little_address_space_is_told_as_such(self):
        data = self.home.write("t.csv", "y,a\n" + "".join(f"{i % 2},{i}\n" for i in range(100)))
        model = self.home.path("model")
        code, out, err = self.home.run("train", "linear", "--data", data, "--label", "y", "--output", model, seconds=60)
        self.assertEqual(code, 0, out + err)
        # Between the most with which the model cannot be read and the least that is enough there is no room for a thread's stack.
        told = 0
        for most in range(24 << 20, 400 << 20, 4 << 20):
            code, out, err = self.home.run("predict", model, "--data", data, "--output", "p.txt", seconds=60,
                                           preexec_fn=lambda n=most: resource.setrlimit(resource.RLIMIT_AS, (n, n)))
            self.assertNotIn("ulimit -u", err)
            if code == 0:
                break
            if "cannot start a thread" in err:
                told += 1
                self.assertIn(f"`ulimit -v` allows, which is {most >> 10} KiB; raise it", err)
        self.assertEqual(code, 0, err)
        self.assertGreater(told, 0)

    def test_files_that_may_not_grow(self):
        # More than the limit is printed; the database, the journal and the records stay below it.
        job = self.home.write("job.yaml", "name: talks\ncommand: [sh, -c, 'yes 0123456789 | head -n 100000; echo last']\n"
                                          "roles: {worker: {replicas: 2}}\n")
        code, out, err = self.home.run("run", job, seconds=120,
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000)))
        self.assertEqual(code, 0, out + err)
        for worker in range(2):
            self.assertIn(f"log lines of worker {worker} are lost: cannot write: File too large", out)
        self.assertEqual(self.home.leftovers(), [])


if __name__ == "__main__":
    unittest.main()
