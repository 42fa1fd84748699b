"""Jobs of a supervisor that is killed (-9) at random points and started again: every job ends as it would have, no line
of its log is lost, no state is recorded twice, and nothing is left."""
import json
import os
import random
import signal
import time
import unittest

import harness

LINES = 40
# worker-0 fails once and is started again; worker-1 prints its lines.
STEADY = f"""\
name: steady
roles:
  worker:
    replicas: 2
    command: [sh, -c, "for i in $(seq 0 {LINES - 1}); do echo line $i; sleep 0.05; done; [ $SHOAL_INDEX$SHOAL_ATTEMPT != 00 ]"]
    restart: {{when: always, limit: 2}}
limits: {{gather: 120s}}
"""
FAILING = f"""\
name: failing
roles:
  worker:
    replicas: 1
    command: [sh, -c, "for i in $(seq 0 {LINES - 1}); do echo line $i; sleep 0.05; done; exit 3"]
    restart: {{when: never}}
limits: {{gather: 120s}}
"""
KILLS = 8


class SupervisorTest(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.program = os.path.join(os.path.dirname(self.home.binary), "src", "controller", "controller_supervisor")
        if not os.path.exists(self.program):
            self.skipTest("controller_supervisor is not built")

    def supervise(self, *arguments):
        shoal, self.home.binary = self.home.binary, self.program
        try:
            return self.home.start(shoal, *arguments)
        finally:
            self.home.binary = shoal

    def ready(self, process):
        harness.poll_until(lambda: "ready" in harness.said(process).splitlines() or process.poll() is not None,
                           30 * harness.PATIENCE)
        self.assertIn("ready", harness.said(process).splitlines(), harness.said(process))

    def end(self, process):
        harness.poll_until(lambda: process.poll() is not None, 120 * harness.PATIENCE)
        self.assertEqual(process.returncode, 0, harness.said(process))

    def show(self, job):
        code, out, err = self.home.run("show", job, "--json")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def check(self, job, state, attempts):
        """The record and the whole log of an ended job; `attempts`: how often each worker ran."""
        shown = self.show(job)
        self.assertEqual(shown["state"], state, json.dumps(shown["events"], indent=1))
        kinds = [event["type"] for event in shown["events"]]
        for once in ("submitted", "admitted", "starting", "running", "ended"):
            self.assertEqual(kinds.count(once), 1, f"{job} {once}: {kinds}")
        ends = [(e["body"]["role"], e["body"]["index"], e["body"]["attempt"]) for e in shown["events"]
                if e["type"] == "task" and e["body"]["state"] == "ended"]
        self.assertEqual(sorted(ends), sorted(set(ends)), "an end is recorded twice")
        self.assertEqual(len(ends), sum(attempts), ends)
        for index, count in enumerate(attempts):
            for attempt in range(1, count + 1):
                code, out, err = self.home.run("logs", job, f"worker-{index}", "--attempt", str(attempt))
                self.assertEqual(code, 0, err)
                self.assertEqual(out, "".join(f"line {i}\n" for i in range(LINES)), f"{job} worker-{index} {attempt}")

    def test_a_supervisor_is_killed_at_random_points(self):
        seed = int(os.environ.get("SHOAL_TEST_SEED", time.time()))
        chance = random.Random(seed)
        print("seed", seed)
        steady, failing = self.home.write("steady.yaml", STEADY), self.home.write("failing.yaml", FAILING)
        process = self.supervise("3", steady)
        self.ready(process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process = self.supervise("2", failing)
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.0, 1.0))
            process.send_signal(signal.SIGKILL)
            process.wait()
            # Another command in between leaves the jobs to the next supervisor.
            code, out, err = self.home.run("jobs", "--json")
            self.assertEqual(code, 0, err)
            self.assertNotIn("its controller was killed", out)
            process = self.supervise("0")
        self.end(process)
        jobs = [json.loads(line) for line in self.home.run("jobs", "--all", "--json")[1].splitlines()]
        names = sorted(job["name"] for job in jobs)
        self.assertEqual(names[-3:], ["steady0", "steady1", "steady2"])
        for job in jobs:
            if job["name"].startswith("steady"):
                self.check(job["id"], "succeeded", [2, 1])
            else:
                self.check(job["id"], "failed", [1])
        self.assertEqual(self.home.leftovers(), [])

    def test_jobs_end_while_there_is_no_supervisor(self):
        process = self.supervise("2", self.home.write("failing.yaml", FAILING))
        self.ready(process)
        harness.poll_until(lambda: harness.said(process).count(" running") == 2, 60 * harness.PATIENCE)
        process.send_signal(signal.SIGKILL)
        process.wait()
        harness.poll_until(lambda: not self.home.processes(), 60 * harness.PATIENCE)
        self.end(self.supervise("0"))
        for directory in self.home.job_dirs():
            self.check(os.path.basename(directory), "failed", [1])
        self.assertEqual(self.home.leftovers(), [])


if __name__ == "__main__":
    unittest.main()
