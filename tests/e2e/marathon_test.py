"""Jobs on a double of Marathon (tests/marathon), which starts real processes and starts again whatever ends. After each
job its group is gone, nothing runs, and no Mesos task was made after its task had ended. Prints what it measured."""
import json
import os
import sys
import time
import unittest
import urllib.request

import harness

sys.path.insert(0, os.path.join(harness.SOURCE, "tests", "marathon"))
import marathon_double  # noqa: E402

FIGURES = []
TRAIN = """\
name: vectors
framework: shoal
learn: {algorithm: word2vec, dim: 20, epochs: 2, min_count: 1, deterministic: true, seed: 7}
data: {train: {source: %s, format: text, shard_by: worker}}
roles:
  server: {replicas: 1, follows: worker}
  worker: {replicas: 2}
outputs: {model: %s}
"""
TRUE = 'name: four\nframework: generic\nroles: {worker: {replicas: 4, command: ["true"]}}\n'
SLEEP = 'name: long\nframework: generic\nroles: {worker: {replicas: 2, command: [sleep, "%s"]}}\n'


def tearDownModule():
    for figure in FIGURES:
        print("| " + " | ".join(figure) + " |")


class MarathonTest(unittest.TestCase):
    authorization = ""

    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.marathon = marathon_double.Marathon(self.home.path("sandboxes"), authorization=self.authorization)
        self.addCleanup(self.marathon.close)
        self.env = {"SHOAL_MARATHON_URL": self.marathon.url, "SHOAL_ENGINE": "marathon"}

    def knob(self, name, **value):
        request = urllib.request.Request(f"{self.marathon.url}/test/{name}", json.dumps(value).encode())
        with urllib.request.urlopen(request) as reply:
            self.assertEqual(reply.status, 200)

    def history(self, *states):
        return [one for one in self.marathon.scheduler.history if one[1] in states]

    def launches(self):
        return len(self.history("TASK_STAGING"))

    def nothing_is_left(self):
        state = self.marathon.scheduler
        harness.poll_until(lambda: not state.deployments, 5 * harness.PATIENCE)  # somebody else's may take its time
        self.assertEqual((list(state.apps), state.stopped, state.deployments), ([], [], []))
        self.assertEqual([one for one in self.home.leftovers() if "sandboxes" not in one], [])

    def run_job(self, text, *arguments, code=0, env=None):
        path = self.home.write("job.yaml", text)
        got, out, err = self.home.run("run", path, *arguments, env={**self.env, **(env or {})})
        self.assertEqual(got, code, out + err)
        return out + err

    def start_job(self, text, *arguments):
        return self.home.start("run", self.home.write("job.yaml", text), *arguments, env=self.env)

    def wait_for(self, condition, seconds=30):
        value = harness.poll_until(condition, seconds * harness.PATIENCE)
        self.assertTrue(value)
        return value

    def running(self, process):
        """The Mesos tasks of its workers, once their programs run."""
        self.wait_for(lambda: "sleep" in str([p.argv for p in self.home.processes()]) or process.poll() is not None)
        self.assertIsNone(process.poll(), harness.said(process))
        return [task for app in self.marathon.scheduler.apps.values() if app.id.endswith("/worker")
                for task in app.tasks.values()]

    def finish(self, process, code=0, seconds=60):
        self.assertEqual(process.wait(timeout=seconds * harness.PATIENCE), code, harness.said(process))
        self.nothing_is_left()
        return harness.said(process)


class EndToEnd(MarathonTest):
    def test_tasks_that_end_are_not_started_again(self):
        begun = time.monotonic()
        self.run_job(TRUE)
        took = time.monotonic() - begun
        self.nothing_is_left()
        self.assertEqual(self.launches(), 5, self.marathon.scheduler.history)  # a coordinator and four workers
        self.assertEqual(self.history("TASK_FINISHED", "TASK_FAILED"), [])
        FIGURES.append(("`shoal run` of 4 tasks of `true`, whole command", f"{took * 1000:.0f} ms"))

    def test_the_group_goes_after_the_verdict(self):
        words = [["sea", "ship", "wave", "land"][i * i % 7 % 4] for i in range(5000)]
        source = self.home.write("text.txt", "\n".join(" ".join(words[i:i + 10]) for i in range(0, 5000, 10)))
        results = []
        for engine in ("local", "marathon"):
            out = self.home.path("out-" + engine)
            self.run_job(TRAIN % (source, out), "--engine", engine)
            with open(os.path.join(out, "vectors.bin"), "rb") as file:
                results.append(file.read())
        self.assertEqual(results[0], results[1])
        self.assertGreater(len(results[0]), 100)
        self.nothing_is_left()
        verdicts = [os.path.getmtime(os.path.join(one, "verdict.json")) for one in self.home.job_dirs()]
        gone = max(one[0] for one in self.history("TASK_KILLED"))
        self.assertLess(gone - max(verdicts), 5 * harness.PATIENCE)
        self.assertEqual(self.launches(), 4)
        FIGURES.append(("word2vec in deterministic mode", "the local engine's bytes"))
        FIGURES.append(("from the verdict to the last Mesos task gone", f"{(gone - max(verdicts)) * 1000:.0f} ms"))

    def test_a_lost_agent_is_made_good(self):
        process = self.start_job(SLEEP % 3)
        lost = self.running(process)[0]
        self.knob("reach", host=lost.agent.host, reachable=False, dead=True)
        self.finish(process)
        self.assertGreater(self.launches(), 3)

    def test_a_killed_mesos_task_is_made_good(self):
        process = self.start_job(SLEEP % 3)
        self.knob("kill", task=self.running(process)[0].id)
        self.finish(process)
        self.assertEqual(self.launches(), 4)

    def test_why_it_waits_is_said(self):
        self.knob("refuse", app=".", reason="InsufficientMemory")
        process = self.start_job(SLEEP % 0)
        self.wait_for(lambda: "not enough memory (3 of 3 offers)" in self.home.run("jobs", env=self.env)[1]
                      or process.poll() is not None)
        self.assertIsNone(process.poll(), harness.said(process))
        self.assertEqual(self.launches(), 0)
        self.knob("refuse", app="", reason="")
        self.finish(process)

    def test_a_deployment_may_take_its_time(self):
        self.knob("hold", on=True)
        process = self.start_job(SLEEP % 0)
        self.wait_for(lambda: self.marathon.scheduler.deployments)
        self.assertEqual(self.launches(), 0)
        self.knob("hold", on=False)
        self.finish(process)

    def test_a_group_that_somebody_removes_fails_the_job(self):
        process = self.start_job(SLEEP % 600)
        task = self.running(process)[0]
        group = task.app.id.rsplit("/", 1)[0]
        request = urllib.request.Request(f"{self.marathon.url}/v2/groups{group}?force=true", method="DELETE")
        urllib.request.urlopen(request).close()
        self.assertIn("somebody else removed it", self.finish(process, code=1))

    def test_stop_removes_the_group(self):
        process = self.start_job(SLEEP % 600)
        self.running(process)
        begun = time.monotonic()
        self.assertEqual(self.home.run("stop", "long", env=self.env)[0], 0)
        self.finish(process, code=130)
        FIGURES.append(("`shoal stop` to the group gone", f"{(time.monotonic() - begun) * 1000:.0f} ms"))


class Story(MarathonTest):
    """examples/dcos-word2vec: the deployment of then, and what replaces it."""
    FOLDER = os.path.join(harness.SOURCE, "examples", "dcos-word2vec")

    def test_the_three_apps_as_they_were_written(self):
        for engine in ("local", "marathon"):
            code, out, err = self.home.run("run", os.path.join(self.FOLDER, "marathon.json"), "--engine", engine, env=self.env,
                                           cwd=self.FOLDER)
            self.assertEqual(code, 0, out + err)
            self.assertEqual(out.count("| worker: the root is 127."), 2, out)
            self.assertEqual(out.count("1 servers, 2 workers"), out.count("the root is"), out)
            self.assertNotIn("10.0.3.17", out)  # its own addresses
        self.nothing_is_left()
        self.assertEqual(self.launches(), 5)

    def test_the_job_file_that_replaces_them(self):
        source = self.home.write("text8", "sea ship wave land " * 2000)
        for engine in ("local", "marathon"):
            model = self.home.path("vectors-" + engine)
            code, out, err = self.home.run("run", os.path.join(self.FOLDER, "job.yaml"), "--engine", engine, "--set",
                                           f"data.train.source={source}", "--set", f"outputs.model={model}", env=self.env)
            self.assertEqual(code, 0, out + err)
            self.assertEqual(len(harness.read_vectors(os.path.join(model, "vectors.bin"))), 4)
        self.nothing_is_left()


class Plan(MarathonTest):
    def test_plan_shows_the_group_and_reaches_for_nobody(self):
        path = self.home.write("job.yaml", SLEEP % 1 + "marathon: {constraints: ['@hostname:UNIQUE'], group: /ml/jobs,\n"
                               "  secrets: {KEY: training/key}}\n")
        code, out, err = self.home.run("plan", path, "--engine", "marathon", env={"SHOAL_MARATHON_TOKEN": "s3cret"})
        self.assertEqual(code, 0, err)
        self.assertIn('"constraints"', out)
        self.assertIn("/ml/jobs/", out)
        self.assertNotIn("s3cret", out + err)
        self.assertEqual(self.marathon.requests, [])

    def test_what_is_wrong_is_said(self):
        for setting, says in (("constraints: [hostname]", "FIELD:OPERATOR"), ("group: shoal", "expected a path"),
                              ("url: nonsense", "marathon.url"), ("privileged: true", "Docker's"),
                              ("grop: /x", "group")):
            path = self.home.write("job.yaml", SLEEP % 1 + f"marathon: {{{setting}}}\n")
            code, out, err = self.home.run("plan", path, "--engine", "marathon")
            self.assertEqual(code, 2, out + err)
            self.assertIn(says, err)


class Token(MarathonTest):
    authorization = "token=abc"

    def test_credentials(self):
        self.assertIn("SHOAL_MARATHON_TOKEN", self.run_job(TRUE, code=1))
        self.run_job(TRUE, env={"SHOAL_MARATHON_TOKEN": "abc"})
        self.run_job(TRUE, env={"SHOAL_MARATHON_CREDENTIALS": self.home.write("token", "abc\n")})
        self.nothing_is_left()


if __name__ == "__main__":
    unittest.main()
