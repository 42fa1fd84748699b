"""Jobs whose controller, coordinator and launchers share no directory, as on other hosts: the engine local-apart gives each
process an empty one. SHOAL_BIN names the binary."""
import json
import os
import signal
import unittest

import harness

ENGINE = ("--engine", "local-apart")

TRAIN = """\
name: vectors
framework: shoal
learn: {algorithm: word2vec, dim: 20, epochs: 3, min_count: 1, deterministic: true, seed: 7}
data: {train: {source: text.txt, format: text, shard_by: worker}}
roles:
  server: {replicas: 1, follows: worker}
  worker: {replicas: 2}
outputs: {model: @OUT@}
"""


class ApartTest(harness.JobsTest):
    def directory(self):
        return self.home.job_dirs()[-1]

    def read(self, *parts):
        with open(os.path.join(*parts), encoding="utf-8") as f:
            return f.read()

    def begin(self, text, *arguments):
        process = self.home.start("run", self.home.write("job.yaml", text), *ENGINE, *arguments)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def kill(self, kind, number=0):
        """kill -9 of a process of the job, as soon as there is one."""
        found = harness.poll_until(lambda: [p for p in self.home.processes() if p.kind == kind], 20 * harness.PATIENCE)
        self.assertTrue(found, f"no {kind}")
        os.kill(sorted(found, key=lambda p: p.pid)[number].pid, signal.SIGKILL)
        return found

    def printed(self, process, words):
        self.assertTrue(harness.poll_until(lambda: words in harness.said(process), 30 * harness.PATIENCE),
                        harness.said(process))

    def test_logs_verdict_and_outputs_come_to_the_controller(self):
        code, out, err = self.go("""\
name: plain
outputs: {model: kept/model}
roles:
  worker:
    replicas: 2
    command: [sh, -c, 'echo hello from $SHOAL_INDEX; mkdir -p $SHOAL_OUTPUT; echo $SHOAL_INDEX > $SHOAL_OUTPUT/index']
""", *ENGINE)
        self.assertEqual(code, 0, out + err)
        self.assertIn("hello from 1", out)
        directory = self.directory()
        self.assertEqual(self.read(directory, "logs", "worker-1.0.log"), "hello from 1\n")
        self.assertEqual(json.loads(self.read(directory, "verdict.json"))["state"], "succeeded")
        self.assertEqual(self.read(self.home.path("kept", "model", "index")), "0\n")
        self.assertEqual(self.read(directory, "outputs", "worker-1.0", "model", "index"), "1\n")
        self.assertFalse(os.path.exists(os.path.join(directory, "apart")))

    def test_the_directory_is_shipped(self):
        os.mkdir(self.home.path("code"))
        self.home.write("code/main.sh", "echo shipped; cat deep/data\n")
        os.mkdir(self.home.path("code", "deep"))
        self.home.write("code/deep/data", "x" * 700_000 + "\n")
        code, out, err = self.go("""\
name: shipped
files: code
roles: {worker: {replicas: 2, command: [sh, main.sh]}}
""", *ENGINE, "-q")
        self.assertEqual(code, 0, out + err)
        for index in (0, 1):
            self.assertEqual(self.read(self.directory(), "logs", f"worker-{index}.0.log"), "shipped\n" + "x" * 700_000 + "\n")

    def test_a_failure_is_told_with_its_last_line(self):
        code, out, err = self.go("name: bad\nroles: {worker: {command: [sh, -c, 'echo oh no; exit 3']}}\n", *ENGINE)
        self.assertEqual(code, 1, out + err)
        self.assertIn("oh no", err)

    def test_word2vec_gives_the_bytes_of_the_local_engine(self):
        self.home.write("text.txt", "".join(f"w{i * 7919 % 97} w{i % 89} w{i % 13}" + ("\n" if i % 10 == 0 else " ")
                                            for i in range(20_000)))
        models = {}
        for engine in ("local", "local-apart"):
            code, out, err = self.go(TRAIN.replace("@OUT@", engine), "--engine", engine)
            self.assertEqual(code, 0, out + err)
            with open(self.home.path(engine, "vectors.bin"), "rb") as f:
                models[engine] = f.read()
        self.assertEqual(models["local"], models["local-apart"])

    def test_data_that_is_not_where_the_workers_are_is_told_by_them(self):
        code, out, err = self.go(TRAIN.replace("text.txt", "/mnt/of/the/cluster").replace("@OUT@", "model"), *ENGINE)
        self.assertEqual(code, 1, out + err)
        self.assertIn("data file /mnt/of/the/cluster does not exist", err)

    COUNT = """\
name: count
roles:
  worker:
    replicas: 2
    restart: {when: transient, backoff: 10ms}
    command: [sh, -c, 'i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); sleep 0.1; done; echo $i > $SHOAL_OUTPUT/count']
"""

    def check_counted(self, attempt=0):
        lines = "".join(f"line {i}\n" for i in range(40))
        for index in (0, 1):
            self.assertEqual(self.read(self.directory(), "logs", f"worker-{index}.{attempt}.log"), lines)
            self.assertEqual(self.read(self.directory(), "outputs", f"worker-{index}.{attempt}", "count"), "40\n")

    def test_a_coordinator_that_comes_back_with_nothing_goes_on(self):
        process = self.begin(self.COUNT)
        self.printed(process, "line 3")
        self.kill("coordinator")
        self.printed(process, "line 10")
        self.kill("coordinator")
        self.assertEqual(process.wait(timeout=60 * harness.PATIENCE), 0, harness.said(process))
        self.assertEqual(self.home.leftovers(), [])
        self.check_counted()

    def test_a_coordinator_that_dies_before_the_job_runs(self):
        process = self.begin(self.COUNT)
        self.kill("coordinator")
        self.assertEqual(process.wait(timeout=60 * harness.PATIENCE), 0, harness.said(process))
        self.assertEqual(self.home.leftovers(), [])

    def test_a_launcher_that_dies_is_made_again(self):
        process = self.begin(self.COUNT)
        self.printed(process, "line 3")
        self.kill("launcher")
        self.assertEqual(process.wait(timeout=60 * harness.PATIENCE), 0, harness.said(process))
        self.assertEqual(self.home.leftovers(), [])

    def test_of_a_killed_controller_nothing_is_left(self):
        process = self.begin(self.COUNT.replace("-lt 40", "-lt 4000"))
        self.printed(process, "line 3")
        process.kill()
        process.wait()
        self.assertEqual(self.home.leftovers(seconds=30), [])
        code, out, _ = self.home.run("jobs", "--json")
        self.assertEqual(code, 0)
        self.assertTrue(json.loads(out.splitlines()[-1])["ended"])

    def test_a_suspended_job_goes_on_with_the_journal_that_its_controller_has(self):
        process = self.begin(self.COUNT)
        self.printed(process, "line 3")
        code, out, err = self.home.run("suspend", "count")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(process.wait(timeout=60), 130)
        self.assertEqual(self.home.leftovers(), [])
        code, out, err = self.home.run("resume", "count")
        self.assertEqual(code, 0, out + err)
        self.check_counted(attempt=1)
        self.assertEqual(self.home.leftovers(), [])

    def test_it_is_stopped_by_name_with_and_without_its_controller(self):
        process = self.begin(self.COUNT.replace("-lt 40", "-lt 4000"))
        self.printed(process, "line 3")
        code, out, err = self.home.run("stop", "count")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(process.wait(timeout=60), 130)
        earlier = self.home.job_dirs()
        process = self.begin(self.COUNT.replace("-lt 40", "-lt 4000").replace("roles:", "on_controller_loss: keep\nroles:"))
        self.printed(process, "line 3")
        process.kill()
        process.wait()
        directory, = set(self.home.job_dirs()) - set(earlier)
        code, out, err = self.home.run("stop", os.path.basename(directory))
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.home.leftovers(), [])
        self.assertEqual(json.loads(self.read(directory, "verdict.json"))["state"], "cancelled")

    def test_large_outputs_survive_the_coordinator(self):
        process = self.begin("""\
name: large
roles:
  worker:
    command: [sh, -c, 'echo begun; head -c 300000000 /dev/zero > $SHOAL_OUTPUT/large; echo more > $SHOAL_OUTPUT/small; echo written']
""")
        self.printed(process, "written")
        incoming = lambda: [d for d in self.home.job_dirs()
                            if os.path.exists(os.path.join(d, "outputs", ".incoming", "worker-0.0", "large"))]
        harness.poll_until(incoming, 20)
        self.kill("coordinator")
        self.assertEqual(process.wait(timeout=100 * harness.PATIENCE), 0, harness.said(process))
        there = os.path.join(self.directory(), "outputs", "worker-0.0")
        self.assertEqual(os.path.getsize(os.path.join(there, "large")), 300_000_000)
        self.assertEqual(self.read(there, "small"), "more\n")
        self.assertEqual(self.home.leftovers(), [])


if __name__ == "__main__":
    unittest.main()
