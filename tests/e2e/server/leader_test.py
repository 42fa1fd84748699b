"""Several servers on one PostgreSQL: one leads, and another takes over when it is stopped, killed or frozen. Jobs end as they
would have, nothing runs twice, and a frozen server that goes on changes nothing.

SHOAL_TEST_ENGINE=docker|slurm runs the jobs there; script/test-cluster starts these for a command."""
import json
import os
import signal
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import postgres  # noqa: E402  pylint: disable=wrong-import-position
from server_harness import PATIENCE, Home, Server, job_text, poll_until, said  # noqa: E402  pylint: disable=wrong-import-position

ENGINE = os.environ.get("SHOAL_TEST_ENGINE", "local")
IMAGE = os.environ.get("SHOAL_TEST_IMAGE", "")
LINES = 60
# worker-0 fails once. Each start of a program leaves a line in `runs`, which a container does not see.
STEADY = f"{'image: ' + IMAGE if IMAGE else ''}" + """
name: %s
roles:
  worker:
    replicas: 2
    command: [sh, -c, "echo $SHOAL_JOB_ID $SHOAL_ROLE/$SHOAL_INDEX/$SHOAL_ATTEMPT >> %s; for i in $(seq 1 %d); do echo line $i; sleep 0.1; done;
                       [ $SHOAL_INDEX$SHOAL_ATTEMPT != 00 ]"]
    restart: {when: always, limit: 2}
limits: {gather: 120s}
"""
TAKEOVER = 10  # seconds


@unittest.skipUnless(postgres.programs(), "PostgreSQL is not installed (Debian: postgresql-15)")
class LeaderCase(unittest.TestCase):
    """Two servers of one database; leader_slow_test.py has the tests that take longer."""

    def setUp(self):
        self.database = postgres.Postgres()
        self.addCleanup(self.database.close)
        self.home = Home()
        self.addCleanup(self.home.__exit__)
        self.first, self.second = self.server(), self.server()

    def server(self):
        return Server(self.home, options=("--store", self.database.url, "--engine", ENGINE))

    def start(self):
        """The first leads, the second stands by."""
        self.first.start()
        self.second.start()
        self.assertEqual((self.first.ready["role"], self.second.ready["role"]), ("leader", "standby"))

    def leads(self, server, seconds=TAKEOVER):
        """The seconds until the server says that it is ready; fails after more than `seconds`."""
        began = time.monotonic()

        def ready():
            try:
                return server.request("GET", "/readyz", token=None).status == 200
            except OSError:
                return False

        self.assertTrue(poll_until(ready, seconds * PATIENCE, 0.02), said(server.process))
        return time.monotonic() - began

    @property
    def runs(self):
        return "/dev/null" if IMAGE else self.home.path("runs")

    def ran(self, job):
        with open(self.runs, encoding="utf-8") as f:
            return sorted(line.split()[1] for line in f if line.startswith(job))

    def submit(self, server, name):
        return server.submit(STEADY % (name, self.runs, LINES))

    def check(self, server, job):
        """Every state and end once, every line once, every attempt started once."""
        self.assertEqual(server.wait_for_end(job, 180)["state"], "succeeded")
        events = server.get(f"/jobs/{job}/events?limit=1000").json["items"]
        kinds = [event["type"] for event in events]
        for once in ("submitted", "admitted", "starting", "running", "ended"):
            self.assertEqual(kinds.count(once), 1, (once, json.dumps(events, indent=1)))
        ends = [(e["body"]["role"], e["body"]["index"], e["body"]["attempt"]) for e in events
                if e["type"] == "task" and e["body"]["state"] == "ended"]
        self.assertEqual(sorted(ends), [("worker", 0, 0), ("worker", 0, 1), ("worker", 1, 0)], ends)
        lines = b"".join(b"line %d\n" % i for i in range(1, LINES + 1))
        for _, index, attempt in ends:
            self.assertEqual(server.get(f"/jobs/{job}/logs/worker-{index}/{attempt}").body, lines, (job, index, attempt))
        if not IMAGE:
            self.assertEqual(self.ran(job), ["worker/0/0", "worker/0/1", "worker/1/0"])

    def nothing_is_left(self, *servers):
        pids = {server.process.pid for server in servers}
        left = poll_until(lambda: [p for p in self.home.processes() if p.pid not in pids] == [], 20 * PATIENCE, 0.05)
        self.assertTrue(left, self.home.processes())


class LeaderTest(LeaderCase):
    def test_one_leads(self):
        self.start()
        self.assertEqual(self.second.ready["leader"], self.first.url)
        for target in ("/jobs", "/me", "/api/v1/openapi.json", "/metrics", "/nothing"):
            reply = self.second.get(target)
            self.assertEqual(reply.status, 503, (target, reply))
            self.assertEqual(reply.headers["Shoal-Leader"], self.first.url)
            self.assertEqual(reply.headers["Retry-After"], "1")
            self.assertIn(f"{self.first.url} leads", reply.detail)
        self.assertEqual(self.second.request("POST", "/jobs", {"file": job_text()}).status, 503)
        self.assertEqual(self.second.request("GET", "/healthz", token=None).status, 200)
        reply = self.second.request("GET", "/readyz", token=None)
        self.assertEqual((reply.status, reply.body), (503, f"standby; {self.first.url} leads\n".encode()))
        self.assertEqual(self.second.request("GET", "/readyz?standby=true", token=None).status, 200)
        reply = self.first.request("GET", "/readyz?standby=true", token=None)
        self.assertEqual((reply.status, reply.body), (200, b"ready; leader\n"))
        with self.subTest("a leader that ends in order is replaced at once"):
            job = self.submit(self.first, "handed")
            self.first.wait_for(job, ("running",))
            self.assertEqual(self.first.stop(), 0)
            print(f"took over {self.leads(self.second, 4):.1f} s after an end in order")
            self.assertIn('"event":"leading"', said(self.second.process))
            self.check(self.second, job)

    def test_a_killed_leader_is_replaced(self):
        self.start()
        jobs = [self.submit(self.first, f"killed{i}") for i in range(3)]
        for job in jobs:
            self.first.wait_for(job, ("running",))
        self.first.kill()
        print(f"took over {self.leads(self.second):.1f} s after the kill")
        self.first.start()
        self.assertEqual(self.first.ready["role"], "standby")
        self.second.kill()
        print(f"took over {self.leads(self.first):.1f} s after the kill")
        for job in jobs:
            self.check(self.first, job)
        self.nothing_is_left(self.first)

    def test_a_frozen_leader_changes_nothing(self):
        self.start()
        jobs = [self.submit(self.first, f"frozen{i}") for i in range(3)]
        for job in jobs:
            self.first.wait_for(job, ("running",))
        self.first.process.send_signal(signal.SIGSTOP)
        print(f"took over {self.leads(self.second):.1f} s after the stop")
        # A launcher dies while both believe that they manage the job: the new leader alone replaces it.
        launcher = None if ENGINE != "local" else next(p for p in self.home.processes() if p.kind == "launcher" and jobs[0] in " ".join(p.argv + list(p.environ.values())))
        if launcher is not None:
            os.kill(launcher.pid, signal.SIGKILL)
        more = self.submit(self.second, "more")
        self.first.process.send_signal(signal.SIGCONT)
        self.assertTrue(poll_until(lambda: '"event":"standby"' in said(self.first.process), 15 * PATIENCE), said(self.first.process))
        poll_until(lambda: self.first.get("/jobs").headers["Shoal-Leader"], 10 * PATIENCE, 0.1)
        reply = self.first.get("/jobs")
        self.assertEqual((reply.status, reply.headers["Shoal-Leader"]), (503, self.second.url))
        for job in jobs[1:] + [more]:
            self.check(self.second, job)
        # Its program was lost with its launcher and started again, by one launcher.
        self.assertEqual(self.second.wait_for_end(jobs[0], 180)["state"], "succeeded")
        ran = self.ran(jobs[0])
        self.assertEqual(len(ran), len(set(ran)), ran)
        with self.subTest("the process leads again"):
            job = self.submit(self.second, "back")
            self.second.wait_for(job, ("running",))
            self.second.kill()
            self.leads(self.first)
            self.check(self.first, job)
        self.nothing_is_left(self.first)

    def test_other_state_directories_are_refused(self):
        self.first.start()
        other = self.server()
        other.state = self.home.path("other")
        with self.assertRaises(AssertionError) as refused:
            other.start()
        self.assertIn(f"the servers of this store keep the files of jobs in {self.first.state}", str(refused.exception))
        self.assertIn("shared.id is missing", str(refused.exception))
        link = self.server()
        link.state = self.home.path("link")
        os.symlink(self.first.state, link.state)
        with self.assertRaises(AssertionError) as refused:
            link.start()
        self.assertIn("mount it at the same path on every host", str(refused.exception))
        code, _, err = self.home.run("server", "restore", self.home.path("copy"), "--state", self.first.state)
        self.assertNotEqual(code, 0, err)

    def test_a_command_follows_the_leader(self):
        self.start()
        urls = f"{self.first.url},{self.second.url}"
        env = {"SHOAL_TOKEN": self.first.admin}
        run = self.home.start("--server", urls, "run", self.home.write("job.yaml", STEADY % ("followed", self.runs, LINES)), env=env)
        self.assertTrue(poll_until(lambda: "| line 20" in said(run), 60 * PATIENCE), said(run))
        self.first.kill()
        code, out, err = self.home.run("--server", urls, "jobs", "--json", env=env)
        self.assertEqual(code, 0, err)
        job = json.loads(out.splitlines()[0])["id"]
        code, out, err = self.home.run("--server", urls, "submit", self.home.write("two.yaml", job_text()), env=env)
        self.assertEqual(code, 0, err)
        self.assertEqual(run.wait(120 * PATIENCE), 0, said(run))
        told = [line.split("| ")[1] for line in said(run).splitlines() if line.strip().startswith("worker-1") and "| line" in line]
        self.assertEqual(told, [f"line {i}" for i in range(1, LINES + 1)], said(run))
        self.check(self.second, job)
        with self.subTest("login"):
            self.first.start()
            code, out, err = self.home.run("login", urls, "--token-file", self.first.token_file)
            self.assertEqual(code, 0, err)
            for chosen in (None, self.first.url, self.second.url):
                code, out, err = self.home.run("show", job, "--json", env={"SHOAL_SERVER": chosen} if chosen else None)
                self.assertEqual(code, 0, err)


if __name__ == "__main__":
    unittest.main()
