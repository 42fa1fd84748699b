"""Jobs that are suspended and resumed: nothing of them runs meanwhile, and they go on where they were. SHOAL_BIN names the binary."""
import glob
import json
import os
import re
import signal
import unittest

import harness

# Counts, and saves on SIGUSR1; ends at 3 of the second attempt.
COUNTING = """\
name: counting
roles:
  worker:
    replicas: 2
    checkpoint_signal: SIGUSR1
    command: [sh, -c, 'at=$SHOAL_JOB_DIR/saved-$SHOAL_INDEX;
      test -f $at && { echo on from $(cat $at) in $(pwd); exit 0; };
      trap "echo attempt $SHOAL_ATTEMPT > $at; exit 1" USR1; echo up; while :; do sleep 0.02; done']
limits: {stop_grace: 5s}
"""
HUGE = """\
name: huge
roles:
  worker: {resources: {memory: @MEMORY@}, command: [sh, -c, "echo up; @DO@"]}
"""
TRAINING = """\
name: training
framework: shoal
learn: {algorithm: word2vec, dim: 32, epochs: 240, min_count: 1, seed: 1}
data: {train: @TEXT@}
roles: {server: 1, worker: 2}
checkpoint: {every: 100ms}
outputs: {model: @MODEL@}
"""


class SuspendTest(harness.JobsTest):
    def begin(self, text, name="job.yaml"):
        job = self.home.start("run", self.home.write(name, text))
        self.assertTrue(harness.poll_until(lambda: harness.said(job).count("| up") > 0 or "running" in harness.said(job), 30),
                        harness.said(job))
        return job

    def state(self, name):
        return json.loads(self.home.run("show", name, "--json")[1])["state"]

    def state_or(self, name):
        code, out, _ = self.home.run("show", name, "--json")
        return json.loads(out)["state"] if code == 0 else ""

    def suspend(self, name, job, alone=True):
        code, out, err = self.home.run("suspend", name)
        self.assertEqual(code, 0, out + err)
        self.assertIn("` resumes it", out)
        self.assertEqual(job.wait(timeout=30), 130, harness.said(job))
        self.assertEqual(self.state(name), "suspended")
        if alone:
            self.assertEqual(self.home.leftovers(), [])

    def test_a_job_goes_on_where_it_saved(self):
        job = self.begin(COUNTING)
        self.assertTrue(harness.poll_until(lambda: harness.said(job).count("| up") == 2, 30))
        self.suspend("counting", job)
        self.assertIn("suspended", self.home.run("jobs")[1])
        code, out, err = self.home.run("suspend", "counting")
        self.assertEqual(code, 0, err)
        code, out, err = self.home.run("resume", "counting", cwd="/")
        self.assertEqual(code, 0, out + err)
        for index in range(2):
            self.assertIn(f"worker-{index} | on from attempt 0 in {self.home.root}", out)
        self.assertNotIn("| up", out)
        self.assertEqual(self.state("counting"), "succeeded")
        self.assertEqual(self.home.leftovers(), [])
        code, out, err = self.home.run("resume", "counting")
        self.assertEqual(code, 1, out + err)
        self.assertIn("is not suspended, but succeeded", err)
        code, out, err = self.home.run("suspend", "counting")
        self.assertEqual(code, 1, out + err)

    def test_what_it_held_is_free_for_others(self):
        with open("/proc/meminfo", encoding="ascii") as f:
            total = int(f.readline().split()[1]) * 1024
        memory = f"{total * 6 // 10 >> 20}Mi"
        job = self.begin(HUGE.replace("@MEMORY@", memory).replace("@DO@", "while :; do sleep 0.02; done"))
        self.suspend("huge", job)
        code, out, err = self.home.run("run", self.home.write("other.yaml", HUGE.replace("name: huge", "name: other").replace(
            "@MEMORY@", memory).replace("@DO@", "exit 0")))
        self.assertEqual(code, 0, out + err)
        code, out, err = self.home.run("stop", "huge")
        self.assertEqual(code, 0, err)
        self.assertEqual(self.state("huge"), "cancelled")

    def test_what_waits_is_scaled_suspended_and_resumed(self):
        with open("/proc/meminfo", encoding="ascii") as f:
            total = int(f.readline().split()[1]) * 1024
        half, third = f"{total * 6 // 10 >> 20}Mi", f"{total * 5 // 10 // 3 >> 20}Mi"
        holds = self.begin(HUGE.replace("@MEMORY@", half).replace("@DO@", "while :; do sleep 0.02; done"))
        text = (f"name: waits\nroles:\n  worker: {{replicas: 3, min: 1, resources: {{memory: {third}}}, "
                "command: [sh, -c, 'echo one of $SHOAL_REPLICAS in $(pwd)']}\n")
        waits = self.home.start("run", self.home.write("waits.yaml", text))
        self.assertTrue(harness.poll_until(lambda: self.state_or("waits") == "pending", 30), harness.said(waits))
        self.suspend("waits", waits, alone=False)
        code, out, err = self.home.run("scale", "waits", "worker=1")
        self.assertEqual(code, 1, out + err)
        self.assertIn("is suspended", err)
        again = self.home.start("resume", "waits")
        self.assertTrue(harness.poll_until(lambda: self.state("waits") == "pending", 30), harness.said(again))
        code, out, err = self.home.run("scale", "waits", "worker=4")
        self.assertEqual(code, 1, out)
        self.assertIn("expected from 1 to 3", err)
        code, out, err = self.home.run("scale", "waits", "worker=1")  # one of them fits
        self.assertEqual(code, 0, out + err)
        self.assertEqual(again.wait(timeout=30), 0, harness.said(again))
        self.assertIn(f"worker-0 | one of 1 in {self.home.root}", harness.said(again))
        self.assertEqual(self.home.run("stop", "huge")[0], 0)
        holds.wait(timeout=30)
        self.assertEqual(self.home.leftovers(), [])

    def test_a_suspended_job_stays_so_whoever_dies(self):
        job = self.begin(COUNTING)
        # The command that holds it is killed: the job runs on for a while, unattended.
        os.kill(job.pid, signal.SIGKILL)
        job.wait(timeout=10)
        code, out, err = self.home.run("suspend", "counting")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.state("counting"), "suspended")
        self.assertEqual(self.home.leftovers(), [])
        # And the one that goes on, before it has come far.
        going = self.home.start("resume", "counting")
        harness.poll_until(lambda: self.home.processes(), 10)
        os.kill(going.pid, signal.SIGKILL)
        going.wait(timeout=10)
        self.assertTrue(harness.poll_until(lambda: self.state("counting") in ("suspended", "succeeded", "cancelled"), 30))
        self.assertEqual(self.home.leftovers(15), [])

    def test_a_trainer_goes_on_from_its_checkpoint(self):
        """Also when its data was away for a while, and a file that is no model's came to its output directory."""
        text = self.home.write("text.txt", "the quick brown fox jumps over the lazy dog and runs \n" * 20000)
        model = self.home.path("vectors")
        job = self.home.start("run", "--json", self.home.write(
            "training.yaml", TRAINING.replace("@TEXT@", text).replace("@MODEL@", model)))
        checkpoints = lambda: set(glob.glob(os.path.join(self.home.home, "jobs", "*", "checkpoints", "*", "manifest.json")))
        self.assertTrue(harness.poll_until(lambda: re.search(r'"step": ?[1-9]', harness.said(job)), 60), harness.said(job))
        for _ in range(2):  # the second was begun while it trained, and knows how far the workers had come
            before = checkpoints()
            self.assertTrue(harness.poll_until(lambda: checkpoints() - before, 30), harness.said(job))
        code, out, err = self.home.run("suspend", "training")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(job.wait(timeout=30), 130, harness.said(job))
        os.rename(text, text + ".away")
        code, out, err = self.home.run("resume", "training")
        self.assertEqual(code, 2, out + err)
        self.assertIn(f"data file {text} does not exist", err)
        self.assertEqual(self.state("training"), "suspended")
        os.rename(text + ".away", text)
        os.makedirs(model, exist_ok=True)
        self.home.write("vectors/notes.txt", "a person's")
        code, out, err = self.home.run("resume", "training", "--json")
        self.assertEqual(code, 0, out + err)
        self.assertTrue(os.path.exists(os.path.join(model, "notes.txt")))
        events = [json.loads(line) for line in out.splitlines()]
        self.assertTrue(any("restored_checkpoint" in event.get("body", {}) for event in events), out)
        self.assertTrue(os.path.exists(os.path.join(model, "vectors.bin")))
        self.assertEqual(self.home.leftovers(outputs=[model]), [])


if __name__ == "__main__":
    unittest.main()
