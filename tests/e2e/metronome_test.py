"""Scheduled jobs: `shoal schedule` with doubles of Metronome and Marathon (tests/marathon), both of which start real
processes. Time is the double's, turned by the test."""
import json
import os
import signal
import sys
import unittest
import urllib.request

import harness
import marathon_test

sys.path.insert(0, os.path.join(harness.SOURCE, "tests", "marathon"))
import cluster  # noqa: E402
import metronome_double  # noqa: E402

DAY = 24 * 3600
NIGHTLY = "schedule: {cron: 30 2 * * *, time_zone: Europe/Berlin}\n"


class ScheduleTest(marathon_test.MarathonTest):
    def setUp(self):
        super().setUp()
        self.metronome = metronome_double.Metronome(self.home.path("controllers"), authorization=self.authorization,
                                                    certificate=self.certificate())
        self.addCleanup(self.metronome.close)
        self.env["SHOAL_METRONOME_URL"] = self.metronome.url

    def shoal(self, *arguments, code=0, env=None):
        got, out, err = self.home.run(*arguments, env={**self.env, **(env or {})})
        self.assertEqual(got, code, out + err)
        return out + err

    def schedule(self, text, *arguments, **more):
        return self.shoal("schedule", self.home.write("nightly.yaml", text), *arguments, **more)

    def listed(self):
        return [json.loads(line) for line in self.shoal("schedule", "--list", "--json").splitlines()]

    def records(self):
        return [json.loads(line) for line in self.shoal("jobs", "--all", "--json").splitlines()]

    def runs(self):
        return [run for job in self.metronome.jobs.values() for run in job.runs]

    def pass_time(self, seconds):
        """Until the runs that began meanwhile are over."""
        self.metronome.advance(seconds)
        self.wait_for(lambda: all(run.completed for run in self.runs()), 60)

    def output(self, run):
        return "".join((run.task.sandbox / name).read_text() for name in ("stdout", "stderr"))

    def nothing_is_scheduled(self):
        self.assertEqual(self.metronome.jobs, {})
        self.assertEqual(os.listdir(os.path.join(self.home.home, "schedules")), [])
        self.nothing_is_left()


class Nights(ScheduleTest):
    def test_each_night_is_a_job_of_its_own(self):
        said = self.schedule(marathon_test.TRUE + NIGHTLY)
        self.assertEqual(said, "four is scheduled: 30 2 * * *, Europe/Berlin\n")
        job = self.metronome.jobs["shoal.four"]
        self.assertEqual(job.schedules["shoal"]["concurrencyPolicy"], "FORBID")
        self.pass_time(DAY)
        self.pass_time(DAY)
        for run in self.runs():
            self.assertEqual(run.status, "SUCCESS", self.output(run))
            self.assertIn("succeeded", self.output(run))
        # half past two in Berlin, in winter
        self.assertEqual([run.created.strftime("%d %H:%M") for run in self.runs()], ["02 01:30", "03 01:30"])
        self.assertEqual([one["state"] for one in self.records()], ["succeeded"] * 2)
        one = self.listed()[0]
        self.assertEqual((one["name"], one["successes"], one["failures"], one["active"]), ("four", 2, 0, []))
        self.assertIn("2026-03-04T01:30", self.shoal("schedule", "--list"))
        self.assertEqual(self.shoal("schedule", "--remove", "four"), "four is no longer scheduled\n")
        self.nothing_is_scheduled()
        self.metronome.advance(7 * DAY)
        self.assertEqual(len(self.records()), 2)
        self.assertEqual(self.launches(), 10)

    def test_a_model_is_trained_anew(self):
        source = self.home.write("text.txt", "sea ship wave land " * 2000)
        self.schedule(harness.TRAIN % ("text.txt", "vectors") + NIGHTLY)  # of the directory where it is said
        models = []
        for text in (None, "moon star moon sky sun " * 2000):
            if text:
                self.home.write(source, text)
            self.pass_time(DAY)
            self.assertEqual(self.runs()[-1].status, "SUCCESS", self.output(self.runs()[-1]))
            models.append(sorted(harness.read_vectors(self.home.path("vectors", "vectors.bin"))))
        self.assertEqual([len(model) for model in models], [4, 4])
        self.assertNotEqual(*models)
        self.shoal("schedule", "--remove", "vectors")
        self.nothing_is_scheduled()

    def test_the_job_that_is_scheduled_is_the_one_of_then(self):
        self.schedule(marathon_test.TRUE + NIGHTLY)
        self.home.write("nightly.yaml", "nonsense: true\n")
        self.pass_time(DAY)
        self.assertEqual(self.runs()[0].status, "SUCCESS", self.output(self.runs()[0]))
        changed = marathon_test.TRUE.replace('"true"', '"false"') + "limits: {restarts: 0}\n" + NIGHTLY
        self.assertIn("is rescheduled", self.schedule(changed))
        self.pass_time(DAY)
        self.assertEqual([run.status for run in self.runs()], ["SUCCESS", "FAILED"])
        self.assertEqual(sorted(one["state"] for one in self.records()), ["failed", "succeeded"])
        self.shoal("schedule", "--remove", "four")
        self.nothing_is_scheduled()

    def test_now(self):
        self.schedule(marathon_test.TRUE + NIGHTLY.replace("}", ", enabled: false}"))
        self.pass_time(DAY)
        self.assertEqual(self.runs(), [])
        self.assertIn("four started as run 2026", self.shoal("schedule", "--run", "four"))
        self.pass_time(0)
        self.assertEqual([one["state"] for one in self.records()], ["succeeded"])
        self.assertIn("not enabled", self.shoal("schedule", "--list"))
        said = self.shoal("run", self.home.write("nightly.yaml", marathon_test.TRUE + NIGHTLY))
        self.assertIn("has a schedule, but runs once, now", said)
        self.assertEqual(len(self.records()), 2)

    def test_a_program_that_is_fetched(self):
        self.schedule(marathon_test.TRUE + NIGHTLY +
                      f"marathon: {{program: shoal, fetch: ['file://{harness.DEFAULT_BINARY}'], constraints: ['rack:LIKE:r[12]']}}\n")
        self.pass_time(DAY)
        self.assertEqual(self.runs()[0].status, "SUCCESS", self.output(self.runs()[0]))
        self.assertIn(self.runs()[0].task.agent.attributes["rack"], ("r1", "r2"))


class LongRuns(ScheduleTest):
    def start(self, **schedule):
        options = {"cron": "0 * * * *", **schedule}
        self.schedule(marathon_test.SLEEP % 600 + f"schedule: {json.dumps(options)}\n")
        self.metronome.advance(3600)
        self.wait_for(lambda: len(self.programs()) == 2)

    def programs(self):
        return [one for one in self.home.processes() if one.argv[:1] == ["sleep"]]

    def end(self):
        self.assertIn("is not over; wait for it, or add --now", self.shoal("schedule", "--remove", "long", code=1))
        self.shoal("schedule", "--remove", "long", "--now")
        self.assertEqual({one["state"] for one in self.records()}, {"cancelled"})
        self.nothing_is_scheduled()

    def test_the_next_is_left_out(self):
        self.start()
        self.metronome.advance(2 * 3600)
        self.assertEqual([one[0] for one in self.metronome.history], ["started", "skipped", "skipped"])
        self.assertEqual(len(self.listed()[0]["active"]), 1)
        self.end()

    def test_or_runs_beside_it(self):
        self.start(concurrency="allow")
        self.metronome.advance(3600)
        self.wait_for(lambda: len(self.programs()) == 4)
        self.end()

    def test_a_controller_that_is_lost_leaves_nothing_behind(self):
        """Its job is not run again before its time; the next `shoal` command, here of another run, clears up."""
        self.start()
        cluster.signal_all(self.runs()[0].task.id, signal.SIGKILL)
        self.wait_for(lambda: self.runs()[0].status == "FAILED" and not self.programs(), 60)
        self.assertEqual(len(self.runs()), 1)
        self.metronome.advance(3600)
        self.wait_for(lambda: len(self.programs()) == 2)
        self.assertEqual([one["state"] for one in self.records()][1:], ["cancelled"])
        self.assertEqual(len({app.rsplit("/", 1)[0] for app in self.marathon.scheduler.apps}), 1)
        self.shoal("schedule", "--remove", "long", "--now")
        self.nothing_is_scheduled()

    def test_what_cannot_start_in_time_is_given_up(self):
        for agent in self.metronome.agents:
            agent.reachable = False
        self.schedule(marathon_test.SLEEP % 0 + "schedule: {cron: 0 * * * *, start_deadline: 10m}\n")
        self.metronome.advance(3600 + 500)
        self.assertEqual([run.status for run in self.runs()], ["STARTING"])
        self.metronome.advance(200)
        for agent in self.metronome.agents:
            agent.reachable = True
        self.metronome.offers()
        self.assertEqual([run.status for run in self.runs()], ["FAILED"])
        self.assertEqual(self.listed()[0]["failures"], 1)
        self.assertEqual(self.records(), [])


class Refusals(ScheduleTest):
    def test_other_engines_name_the_line_of_a_crontab(self):
        said = self.schedule(marathon_test.TRUE + NIGHTLY, "--engine", "slurm", code=1)
        self.assertRegex(said, r"the engine slurm has no schedules.*\n.*30 2 \* \* \* cd '.*' && '.*/shoal' run --quiet "
                               r"--engine slurm '.*nightly.yaml'")
        self.assertEqual(self.metronome.requests, [])

    def test_wrong_use(self):
        path = self.home.write("job.yaml", marathon_test.TRUE)
        for arguments, says in ((("schedule", path), "has no schedule; write schedule: {cron:"),
                                (("schedule",), "got 0 of FILE, --list, --remove and --run"),
                                (("schedule", path, "--list"), "got 2 of FILE"),
                                (("schedule", "--list", "--now"), "--now without --remove"),
                                (("schedule", path, "--set", "schedule.cron=0 0 * * * *"), "got 6 fields, expected five"),
                                (("schedule", path, "--set", "schedule.cron=@daily", "--set", "schedule.time_zone=Mars"),
                                 "such as UTC or Europe/Berlin")):
            self.assertIn(says, self.shoal(*arguments, code=2))
        self.assertIn("no job tomorrow is scheduled", self.shoal("schedule", "--remove", "tomorrow", code=4))
        self.assertIn("no job is scheduled", self.shoal("schedule", "--list"))
        self.assertIn("set SHOAL_METRONOME_URL", self.shoal("schedule", "--list", code=2, env={"SHOAL_METRONOME_URL": ""}))
        self.assertEqual(self.metronome.jobs, {})

    def test_what_is_somebody_elses_is_left_alone(self):
        theirs = {"id": "shoal.four", "run": {"cmd": "true", "cpus": 0.1, "mem": 32, "disk": 0}}
        request = urllib.request.Request(self.metronome.url + "/v1/jobs", json.dumps(theirs).encode())
        urllib.request.urlopen(request).close()
        self.assertIn("was not made by `shoal schedule`", self.schedule(marathon_test.TRUE + NIGHTLY, code=1))
        self.assertEqual(self.listed(), [])
        self.assertEqual(os.listdir(os.path.join(self.home.home, "schedules")), [])
        self.assertEqual(self.metronome.jobs["shoal.four"].spec, theirs)

    def test_plan_shows_what_would_be_sent(self):
        path = self.home.write("job.yaml", marathon_test.TRUE + NIGHTLY.replace("}", ", secrets: {SHOAL_MARATHON_TOKEN: ml/t}}"))
        said = self.shoal("plan", path, "--engine", "marathon", env={"SHOAL_MARATHON_TOKEN": "s3cret"})
        for part in ('"cron": "30 2 * * *"', '"policy": "NEVER"', "Sent by POST /v1/jobs of Metronome", '"source": "ml/t"',
                     "Sent by PUT /v2/groups/shoal/four-"):
            self.assertIn(part, said)
        self.assertNotIn("s3cret", said)
        self.assertEqual(self.metronome.requests + self.marathon.requests, [])
        self.assertIn("30 2 * * * cd ", self.shoal("plan", path, "--engine", "slurm"))


class Token(ScheduleTest):
    authorization = "token=value of ml/token"  # as the double's secret store has it

    def test_it_comes_from_the_secret_store(self):
        known = {"SHOAL_MARATHON_TOKEN": "value of ml/token"}
        self.assertIn("SHOAL_MARATHON_TOKEN", self.schedule(marathon_test.TRUE + NIGHTLY, code=2, env=known))
        self.assertEqual(self.metronome.requests, [])
        text = marathon_test.TRUE + NIGHTLY.replace("}", ", secrets: {SHOAL_MARATHON_TOKEN: ml/token}}")
        self.assertIn("401", self.schedule(text, code=3))
        self.schedule(text, env=known)
        self.assertNotIn("value of", json.dumps(self.metronome.jobs["shoal.four"].spec))
        self.pass_time(DAY)
        self.assertEqual(self.runs()[0].status, "SUCCESS", self.output(self.runs()[0]))
        self.shoal("schedule", "--remove", "four", env=known)
        self.nothing_is_scheduled()


if __name__ == "__main__":
    unittest.main()
