"""The double of Metronome itself: what Metronome's documentation says that it does. Time is what the test says it is."""
import datetime
import os
import sys
import tempfile
import unittest
import zoneinfo

import harness
import marathon_double_test

sys.path.insert(0, os.path.join(harness.SOURCE, "tests", "marathon"))
import cron  # noqa: E402
import metronome_double  # noqa: E402


class DoubleTest(marathon_double_test.DoubleTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="metronome")
        self.addCleanup(self.folder.cleanup)
        self.metronome = self.marathon = metronome_double.Metronome(self.folder.name)
        self.addCleanup(self.metronome.close)
        self.state = self.metronome

    def call(self, method, path, value=None):
        return super().call(method, "/v1/jobs" + path, value)

    def make(self, schedule=None, **run):
        spec = {"id": "ml.job", "run": {"cmd": "exit 0", "cpus": 0.1, "mem": 32, "disk": 0, **run}}
        self.assertEqual(self.call("POST", "", spec)[0], 201)
        if schedule is not None:
            self.assertEqual(self.call("POST", "/ml.job/schedules", {"id": "main", "cron": "0 * * * *", **schedule})[0], 201)

    def whole(self):
        return self.call("GET", "/ml.job?embed=activeRuns&embed=historySummary&embed=schedules")[1]

    def started(self):
        return [one for one in self.metronome.history if one[0] == "started"]


class Behaviour(DoubleTest):
    def test_runs_come_at_their_times_and_are_remembered(self):
        self.make({})
        self.metronome.advance(3 * 3600)
        self.wait_for(lambda: self.whole()["historySummary"]["successCount"] == 3)
        self.assertEqual(self.call("GET", "/ml.job/runs"), (200, []))
        self.assertEqual(self.whole()["schedules"][0]["nextRunAt"], "2026-03-02T04:00:00.000+0000")

    def test_what_fails_is_restarted_where_the_job_says_so(self):
        self.make(cmd="exit 3")
        self.call("POST", "/ml.job/runs")
        self.wait_for(lambda: self.whole()["historySummary"]["failureCount"] == 1)
        self.assertEqual(len(self.started()), 1)
        again = {"cmd": "test -e ../again || { touch ../again; exit 1; }", "cpus": 0.1, "mem": 32, "disk": 0,
                 "restart": {"policy": "ON_FAILURE"}}
        self.assertEqual(self.call("PUT", "/ml.job", {"id": "ml.job", "run": again})[0], 200)
        self.call("POST", "/ml.job/runs")
        self.wait_for(lambda: self.whole()["historySummary"]["successCount"] == 1)
        self.assertEqual(len(self.started()), 3)

    def test_a_run_is_stopped(self):
        self.make(cmd="exec sleep 600")
        run = self.call("POST", "/ml.job/runs")[1]["id"]
        self.assertEqual(self.call("DELETE", "/ml.job")[0], 409)
        self.assertEqual(self.call("POST", f"/ml.job/runs/{run}/actions/stop")[0], 200)
        self.wait_for(lambda: self.whole()["activeRuns"] == [])
        self.assertEqual(self.call("GET", f"/ml.job/runs/{run}")[0], 404)
        self.assertEqual(self.call("DELETE", "/ml.job")[0], 200)

    def test_one_at_a_time_where_the_schedule_forbids_more(self):
        for policy, runs in (("FORBID", 1), ("ALLOW", 3)):
            self.make({"concurrencyPolicy": policy}, cmd="exec sleep 600")
            self.metronome.advance(3 * 3600)
            active = self.whole()["activeRuns"]
            self.assertEqual(len(active), runs)
            for run in active:
                self.call("POST", f"/ml.job/runs/{run['id']}/actions/stop")
            self.wait_for(lambda: self.whole()["activeRuns"] == [])
            self.call("DELETE", "/ml.job")

    def test_what_is_wrong_is_refused(self):
        self.make()
        for change in ({"cmd": ""}, {"mem": 16}, {"nonsense": 1}, {"args": ["x"]}, {"restart": {}}, {"env": {"A": {"secret": "none"}}}):
            spec = {"id": "b", "run": {"cmd": "true", "cpus": 0.1, "mem": 32, "disk": 0, **change}}
            self.assertEqual(self.call("POST", "", spec)[0], 422, change)
        for change in ({"cron": "* * * *"}, {"cron": "61 * * * *"}, {"timezone": "Mars"}, {"startingDeadlineSeconds": 0}, {"id": "A"}):
            self.assertEqual(self.call("POST", "/ml.job/schedules", {"id": "main", "cron": "* * * * *", **change})[0], 422, change)
        self.assertEqual(self.call("POST", "", {"id": "ml.job", "run": {"cmd": "true", "cpus": 1, "mem": 32, "disk": 0}})[0], 409)
        self.assertEqual(self.call("PUT", "/ml.job/schedules/main", {"id": "main", "cron": "* * * * *"})[0], 404)
        self.assertEqual(self.call("GET", "/none")[0], 404)


class Cron(unittest.TestCase):
    def test_times_in_their_zone(self):
        berlin = zoneinfo.ZoneInfo("Europe/Berlin")
        at = datetime.datetime(2026, 3, 28, tzinfo=datetime.timezone.utc)
        for text, first, second in (("0 3 * * *", "03-28 02:00", "03-29 01:00"),       # summer time begins
                                    ("30 2 * * sun", "04-05 00:30", "04-12 00:30"),    # there is no 02:30 on that day
                                    ("0 0 31 * *", "03-30 22:00", "05-30 22:00"),
                                    ("0 0 1 * mon", "03-29 22:00", "03-31 22:00")):    # either of the two days
            one = cron.Cron(text)
            times = [one.next(at, berlin)]
            times.append(one.next(times[0], berlin))
            self.assertEqual([time.strftime("%m-%d %H:%M") for time in times], [first, second], text)


if __name__ == "__main__":
    unittest.main()
