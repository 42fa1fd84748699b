"""`shoal run`, jobs, show, logs, stop against the real binary: what people read, exit codes, and that nothing is left
whoever is killed. SHOAL_BIN names the binary."""
import json
import os
import signal
import time
import unittest

import harness

HELLO = """\
name: hello
roles:
  task: {replicas: 4, command: [sh, -c, "echo hello from $SHOAL_ROLE $SHOAL_INDEX"]}
"""
# Saves when it is told to, as a trainer does; every program leaves a grandchild in a session of its own.
SAVER = """\
name: saver
roles:
  worker:
    replicas: 2
    command: [sh, -c, "trap 'echo saved; exit 0' TERM; setsid sleep 3600 & echo ready; while :; do sleep 0.02; done"]
limits: {stop_grace: 2s, coordinator_timeout: 5s, gather: 20s}
"""
STUBBORN = """\
name: stubborn
roles:
  worker: {replicas: 2, command: [sh, -c, "trap '' TERM INT HUP; echo ready; while :; do sleep 0.02; done"]}
limits: {stop_grace: 30s}
"""


def events_of(text):
    return [json.loads(line) for line in text.splitlines()]


class RunTest(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)

    def job(self, text, name="job.yaml"):
        return self.home.write(name, text)

    def begin(self, text, *arguments):
        """Starts a job in the foreground and waits until two of its programs have said "ready"."""
        process = self.home.start("run", self.job(text), *arguments)
        said = harness.poll_until(lambda: harness.said(process).count("ready") >= 2 or process.poll() is not None,
                                  30 * harness.PATIENCE)
        self.assertIs(said, True, harness.said(process))
        self.assertIsNone(process.poll(), harness.said(process))
        return process

    def end(self, process, seconds=20):
        harness.poll_until(lambda: process.poll() is not None, seconds * harness.PATIENCE)
        self.assertIsNotNone(process.poll(), "still running:\n" + harness.said(process))
        return process.returncode

    def nothing_left(self, seconds=5.0):
        self.assertEqual(self.home.leftovers(seconds), [])

    def states(self):
        code, out, err = self.home.run("jobs", "--json")
        self.assertEqual(code, 0, err)
        return {job["id"]: job for job in events_of(out)}

    def only_job(self):
        jobs = list(self.states().values())
        self.assertEqual(len(jobs), 1)
        return jobs[0]

    def kill(self, kind):
        """SIGKILL to one process of that kind."""
        victims = [p for p in self.home.processes() if p.kind == kind]
        self.assertTrue(victims, f"there is no {kind}")
        os.kill(victims[0].pid, signal.SIGKILL)


class GoodRunTest(RunTest):
    def test_output_of_every_task_is_shown_and_kept(self):
        code, out, err = self.home.run("run", self.job(HELLO))
        self.assertEqual((code, err), (0, ""))
        for i in range(4):
            self.assertIn(f"task-{i} | hello from task {i}\n", out)
        self.assertRegex(out.splitlines()[-1], r"^hello-[0-9a-f]{6} succeeded after ")
        self.nothing_left()
        job = self.only_job()
        self.assertEqual(job["state"], "succeeded")
        code, out, err = self.home.run("logs", "hello", "task-2")
        self.assertEqual((code, out, err), (0, "hello from task 2\n", ""))
        code, out, err = self.home.run("logs", job["id"], "-n", "1", "--json")
        self.assertEqual(sorted(e["text"] for e in events_of(out)), [f"hello from task {i}" for i in range(4)])
        code, out, err = self.home.run("show", "hel", "--json")
        shown = json.loads(out)
        self.assertEqual([t["state"] for t in shown["tasks"]], ["ended"] * 4)
        self.assertEqual([e["type"] for e in shown["events"] if e["type"] != "task"],
                         ["submitted", "admitted", "starting", "running", "finishing", "ended"])

    def test_json_is_one_event_a_line_and_the_last_is_done(self):
        code, out, err = self.home.run("run", self.job(HELLO), "--json")
        self.assertEqual((code, err), (0, ""))
        events = events_of(out)
        self.assertEqual(events[0]["event"], "submitted")
        self.assertEqual(events[-1]["event"], "done")
        self.assertEqual(events[-1]["state"], "succeeded")
        self.assertEqual(sum(e["event"] == "log" for e in events), 4)
        self.assertEqual([e["state"] for e in events if e["event"] == "state"],
                         ["admitted", "starting", "running", "finishing"])

    def test_quiet_says_nothing(self):
        self.assertEqual(self.home.run("run", "-q", self.job(HELLO)), (0, "", ""))

    def test_set_and_name_change_the_job(self):
        code, out, _ = self.home.run("run", self.job(HELLO), "--set", "roles.task.replicas=1", "--name", "other")
        self.assertEqual(code, 0)
        self.assertEqual(out.count(" | "), 1)
        self.assertTrue(self.only_job()["id"].startswith("other-"))

    def test_follower_is_stopped_after_the_last_worker(self):
        code, out, err = self.home.run("run", self.job("""\
roles:
  server: {replicas: 1, follows: worker, ready: {log: listens},
           command: [sh, -c, "trap 'echo told; exit 0' TERM; echo listens; while :; do sleep 0.02; done"]}
  worker: {replicas: 2, after: {role: server, when: ready}, command: ["true"]}
"""))
        self.assertEqual(code, 0, out + err)
        self.assertIn("server-0 | told", out)
        self.nothing_left()

    def test_programs_start_in_the_directory_of_the_job_file(self):
        code, out, _ = self.home.run("run", self.job("roles: {a: {command: [pwd]}}"))
        self.assertEqual(code, 0)
        self.assertIn(f"a-0 | {self.home.root}\n", out)


class BadRunTest(RunTest):
    def test_failure_names_the_task_and_its_last_words(self):
        code, out, err = self.home.run("run", self.job(
            'roles: {w: {replicas: 2, command: [sh, -c, "echo the disk is on fire; exit 7"]}}'))
        self.assertEqual(code, 1)
        self.assertRegex(err, r"^shoal: \S+ failed after .*: .*w.* exited with 7")
        self.assertIn("the disk is on fire", out)
        self.nothing_left()
        self.assertEqual(self.only_job()["state"], "failed")

    def test_missing_program_is_named(self):
        code, _, err = self.home.run("run", self.job('roles: {w: {command: [no-such-program]}}'))
        self.assertEqual(code, 1)
        self.assertIn("no-such-program", err)
        self.nothing_left()

    def test_misspelt_field_is_wrong_usage_and_makes_no_job(self):
        code, out, err = self.home.run("run", self.job("roles:\n  w: {replica: 2, command: ['true']}\n"))
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(err, r"^shoal: .*job.yaml:2:\d+: .*replica.*replicas")
        self.assertEqual(self.states(), {})

    def test_missing_file(self):
        code, _, err = self.home.run("run", self.home.path("nothing.yaml"))
        self.assertEqual(code, 2)
        self.assertRegex(err, r"^shoal: .*nothing.yaml.*\n$")

    def test_unknown_jobs_are_not_found(self):
        for command in ("show", "logs", "stop"):
            code, _, err = self.home.run(command, "nobody")
            self.assertEqual(code, 4, command)
            self.assertIn("there is no job nobody", err)

    def test_ambiguous_names_are_listed(self):
        for _ in range(2):
            self.assertEqual(self.home.run("run", "-q", self.job(HELLO))[0], 0)
        code, _, err = self.home.run("show", "hello")
        self.assertEqual(code, 2)
        self.assertRegex(err, r"matches hello-[0-9a-f]{6}, hello-[0-9a-f]{6}; give a longer prefix")

    def test_misspelt_command(self):
        code, _, err = self.home.run("rnu")
        self.assertEqual(code, 2)
        self.assertIn("did you mean `shoal run`?", err)

    def test_damaged_store_is_one_sentence(self):
        os.mkdir(self.home.home)
        with open(os.path.join(self.home.home, "shoal.db"), "wb") as f:
            f.write(b"x" * 5000)
        code, _, err = self.home.run("jobs")
        self.assertEqual(code, 1)
        self.assertRegex(err, r"^shoal: .*shoal\.db: the file is damaged.*\n$")
        code, out, _ = self.home.run("doctor", "--json")
        records = next(one for one in json.loads(out)["findings"] if one["name"] == "records")
        self.assertEqual((code, records["verdict"]), (1, "bad"))
        self.assertIn("the file is damaged", records["meaning"])


class StopTest(RunTest):
    def test_ctrl_c_once_lets_the_workers_save(self):
        process = self.begin(SAVER)
        process.send_signal(signal.SIGINT)
        code = self.end(process)
        text = harness.said(process)
        self.assertIn("stopping: letting the workers save; press Ctrl-C again to stop at once", text)
        self.assertEqual(text.count("| saved"), 2, text)
        self.assertEqual(code, 130, text)
        self.assertRegex(text.splitlines()[-1], r"^saver-\S+ was stopped by Ctrl-C and has saved after ")
        self.assertEqual((self.only_job()["state"], self.only_job()["reason"]), ("cancelled", "stopped by Ctrl-C"))
        self.nothing_left()

    def test_ctrl_c_of_tasks_that_do_not_end_well_cancels(self):
        process = self.begin(SAVER.replace("exit 0", "exit 3"))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(process), 130, harness.said(process))
        self.assertEqual(self.only_job()["state"], "cancelled")
        self.nothing_left()

    def test_ctrl_c_twice_stops_at_once(self):
        process = self.begin(STUBBORN)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        harness.poll_until(lambda: "stopping: letting" in harness.said(process), 10 * harness.PATIENCE)
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.end(process), 130, harness.said(process))
        self.assertLess(time.monotonic() - began, 10 * harness.PATIENCE)  # not the stop_grace of 30 s
        self.assertEqual(self.only_job()["state"], "cancelled")
        self.nothing_left()

    def test_stop_from_another_terminal(self):
        process = self.begin(SAVER)
        code, out, err = self.home.run("stop", "saver")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^saver-\S+ cancelled: stopped by `shoal stop`")
        self.end(process)
        self.assertEqual(harness.said(process).count("| saved"), 2)
        self.nothing_left()
        code, out, _ = self.home.run("stop", "saver")
        self.assertEqual(code, 0)
        self.assertIn("has ended already", out)

    def test_stop_now_of_stubborn_tasks(self):
        process = self.begin(STUBBORN)
        began = time.monotonic()
        code, out, err = self.home.run("stop", "--now", "stubborn")
        self.assertEqual((code, err), (0, ""), out)
        self.assertLess(time.monotonic() - began, 10 * harness.PATIENCE)
        self.assertEqual(self.end(process), 130)
        self.nothing_left()

    def test_logs_are_followed_to_the_end(self):
        process = self.begin(SAVER)
        follower = self.home.start("logs", "-f", "saver", "worker-0")
        harness.poll_until(lambda: "ready" in harness.said(follower), 10 * harness.PATIENCE)
        self.assertEqual(self.home.run("stop", "saver")[0], 0)
        self.assertEqual(self.end(follower), 0)
        self.assertEqual(harness.said(follower), self.home.run("logs", "saver", "worker-0")[1])
        self.assertIn("ready\n", harness.said(follower))
        self.assertIn("saved\n", harness.said(follower))
        self.end(process)


class KillTest(RunTest):
    def test_coordinator_is_started_again_and_the_job_goes_on(self):
        process = self.begin(SAVER)
        self.kill("coordinator")
        harness.poll_until(lambda: "the coordinator is back" in harness.said(process), 20 * harness.PATIENCE)
        self.assertIn("the coordinator is back", harness.said(process))
        self.assertEqual(self.home.run("stop", "saver")[0], 0)
        self.end(process)
        self.assertEqual(harness.said(process).count("| saved"), 2, harness.said(process))
        self.assertEqual(harness.said(process).count("| ready"), 2, harness.said(process))  # nothing was started anew
        self.nothing_left()

    def test_launcher_takes_its_task_along_and_both_come_back(self):
        process = self.begin(SAVER)
        self.kill("launcher")
        harness.poll_until(lambda: harness.said(process).count("| ready") >= 3, 20 * harness.PATIENCE)
        self.assertEqual(harness.said(process).count("| ready"), 3, harness.said(process))
        self.assertEqual(self.home.run("stop", "--now", "saver")[0], 0)
        self.end(process)
        self.nothing_left()

    def test_program_that_is_killed_is_started_again(self):
        process = self.begin(SAVER)
        self.kill("worker")
        harness.poll_until(lambda: harness.said(process).count("| ready") >= 3, 20 * harness.PATIENCE)
        self.assertIn("killed by signal 9", harness.said(process))
        self.assertEqual(self.home.run("stop", "--now", "saver")[0], 0)
        self.end(process)
        self.nothing_left()

    def test_controller_takes_the_job_along(self):
        process = self.begin(SAVER)
        self.kill("controller")
        self.assertEqual(self.end(process), -signal.SIGKILL)
        self.nothing_left(seconds=15)  # on_controller_loss: stop, after 5 s
        job = self.only_job()
        self.assertIn(job["state"], ("cancelled", "succeeded"))
        self.assertTrue(job["reason"])
        self.assertNotIn("unattended", job)

    def test_job_that_keeps_running_without_its_controller_is_stopped_by_name(self):
        process = self.begin(SAVER + "on_controller_loss: keep\n")
        self.kill("controller")
        self.end(process)
        job = self.only_job()
        self.assertEqual((job["state"], job.get("unattended")), ("running", True))
        _, out, _ = self.home.run("jobs")
        self.assertIn("running (unattended)", out)
        code, out, err = self.home.run("stop", "saver")
        self.assertEqual((code, err), (0, ""))
        self.nothing_left()
        self.assertIn(self.only_job()["state"], ("cancelled", "succeeded"))

    def test_controller_and_coordinator_at_once(self):
        process = self.begin(SAVER)
        self.kill("controller")
        self.kill("coordinator")
        self.end(process)
        job = self.only_job()  # the command itself clears up
        self.assertEqual(job["state"], "failed")
        self.assertEqual(job["reason"], "its controller was killed and its coordinator is gone")
        self.nothing_left()


if __name__ == "__main__":
    unittest.main()
