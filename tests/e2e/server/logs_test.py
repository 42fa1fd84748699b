"""`shoal logs` with its conditions, of a job and of all jobs: the same output on this machine and over a server."""
import datetime
import json
import os
import re
import signal
import sys
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import PATIENCE, Server, job_text, poll_until, said  # noqa: E402  pylint: disable=wrong-import-position

SLOW = "echo first; sleep 2.2; echo second; printf 'bad \\\\377 byte\\\\n'; sleep 1.2; echo third; printf unfinished"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z ")


class LogsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.server.start()
        cls.job = cls.server.submit(job_text("slow", SLOW))
        assert cls.server.wait_for_end(cls.job)["state"] == "succeeded"

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def here(self, *arguments):
        """The same command without the server, over its state."""
        return self.server.home.run(*arguments, env={"SHOAL_SERVER": "none", "SHOAL_HOME": self.server.state})

    def logs(self, *arguments, code=0):
        """What `shoal logs` prints here and over the server, which is the same."""
        local = self.here("logs", *arguments)
        remote = self.server.shoal("logs", *arguments)
        self.assertEqual((remote[0], remote[1]), (local[0], local[1]), (arguments, remote[2], local[2]))
        self.assertEqual(remote[2], local[2], arguments)
        self.assertEqual(local[0], code, local[2])
        return local[1] if code == 0 else local[2]

    def times(self):
        """Line of worker-0 → its time."""
        lines = self.logs(self.job, "worker-0", "--timestamps").splitlines()
        self.assertTrue(all(TIME.match(line) for line in lines), lines)
        return {line[28:]: line[:27] for line in lines}

    def test_grep(self):
        self.assertEqual(self.logs("slow", "--grep", "ir"), "worker-0 | first\nworker-0 | third\nworker-1 | first\nworker-1 | third\n")
        self.assertEqual(self.logs("slow", "worker-1", "--grep", "^s.*d$"), "second\n")
        self.assertEqual(self.logs("slow", "worker-1", "--grep", "SECOND"), "")
        self.assertEqual(self.logs("slow", "worker-1", "--grep", "SECOND", "--ignore-case"), "second\n")
        self.assertEqual(self.logs("slow", "--role", "worker", "--index", "1", "--grep", "unfin"), "unfinished\n")
        self.assertEqual(self.logs("slow", "worker-0", "--grep", "i", "-n", "2"), "third\nunfinished\n")
        self.assertEqual(self.logs("slow", "worker-0", "--grep", "byte"), "bad \ufffd byte\n")
        lines = [json.loads(line) for line in self.logs("slow", "worker-0", "--grep", "byte", "--json").splitlines()]
        self.assertEqual(lines, [{"role": "worker", "index": 0, "attempt": 0, "text": "bad \ufffd byte"}])

    def test_times(self):
        times = self.times()
        self.assertEqual(list(times), ["first", "second", "bad \ufffd byte", "third", "unfinished"])
        parsed = {line: datetime.datetime.fromisoformat(text[:-1]).replace(tzinfo=datetime.timezone.utc) for line, text in times.items()}
        record = self.server.get(f"/jobs/{self.job}").json
        for moment in parsed.values():
            self.assertLess(record["submitted"][:19], moment.isoformat())
            self.assertLessEqual(moment.isoformat()[:19], record["ended"])
        self.assertGreater((parsed["second"] - parsed["first"]).total_seconds(), 1)
        self.assertGreater((parsed["third"] - parsed["second"]).total_seconds(), 0.5)
        since = ("--since", times["second"])
        self.assertEqual(self.logs("slow", "worker-0", *since, "--grep", "d"), "second\nbad \ufffd byte\nthird\nunfinished\n")
        self.assertEqual(self.logs("slow", "worker-0", "--until", times["second"]), "first\n")
        self.assertEqual(self.logs("slow", "worker-0", *since, "--until", times["third"]), "second\nbad \ufffd byte\n")
        self.assertEqual(self.logs("slow", "worker-0", *since, "-n", "1"), "unfinished\n")
        self.assertEqual(self.logs("slow", "--since", "2040-01-01"), "")
        self.assertEqual(self.logs("slow", "worker-0", "--since", "1h", "--grep", "first"), "first\n")

    def test_without_an_index(self):
        job = self.server.submit(job_text("old", "echo old"))
        self.server.wait_for_end(job)
        os.remove(os.path.join(self.server.state, "jobs", job, "logs", "worker-0.0.times"))
        self.assertEqual(self.logs(job, "worker-0", "--timestamps"), "- old\n")
        self.assertEqual(self.logs(job, "worker-0", "--since", "1h"), "old\n")
        self.assertEqual(self.logs(job, "worker-0", "--since", "2040-01-01"), "")

    def test_bad_arguments(self):
        for arguments, part in ((("--grep", "("), "missing )"), (("--grep", "a" * 5000), "5000 bytes"),
                                (("--since", "yesterday"), "expected how long ago"), (("--since", "25:00"), "expected how long ago"),
                                (("--since", "2026-02-30"), "expected how long ago"), (("--index", "1"), "add --role"),
                                (("worker-0", "--role", "worker"), "in one way"), (("--ignore-case",), "add --grep"),
                                (("--since", "1m", "--until", "2m"), "is not before"), (("--team", "a"), "add --all-jobs"),
                                (("--all-jobs", "--grep", "a"), "leave one out")):
            with self.subTest(arguments):
                self.assertIn(part, self.logs(self.job, *arguments, code=2))
        self.assertIn("add --grep", self.logs("--all-jobs", code=2))
        self.assertIn("--all-jobs", self.logs(code=2))

    def test_long_lines(self):
        job = self.server.submit(job_text("long", "head -c 3000000 /dev/zero | tr '\\\\0' x; echo y; echo needle"))
        self.server.wait_for_end(job)
        self.assertEqual(self.logs(job, "worker-0", "--grep", "needle"), "needle\n")
        self.assertEqual(len(self.logs(job, "worker-0", "--grep", "y")), 3000000 - 2 * (1 << 20) + 2)
        self.assertEqual(self.logs("--all-jobs", "--grep", "needle", "-n", "1"), f"{job} worker-0 | needle\n")

    def test_follow(self):
        script = "echo one hit; echo miss; sleep 1.5; echo two hit; sleep 30"
        job = self.server.submit(job_text("follow", script))
        self.server.wait_for(job, ("running",))
        env = {"SHOAL_SERVER": self.server.url, "SHOAL_TOKEN": self.server.admin}
        here = {"SHOAL_SERVER": "none", "SHOAL_HOME": self.server.state}
        arguments = ("logs", "-f", job, "worker-0", "--grep", "hit", "--timestamps")
        ends = []
        for environment in (env, here):
            process = self.server.home.start(*arguments, env=environment)
            self.assertTrue(poll_until(lambda p=process: said(p).count("hit") == 2, 30 * PATIENCE), said(process))
            process.send_signal(signal.SIGINT)
            process.wait()
            ends.append([line for line in said(process).splitlines() if "hit" in line or "miss" in line])
        self.assertEqual(ends[0], ends[1])
        self.assertTrue(all(TIME.match(line) for line in ends[0]), ends)
        with self.subTest("until a time"):
            until = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=2)).isoformat()
            began = time.monotonic()
            code, out, err = self.server.shoal("logs", "-f", job, "worker-0", "--until", until, "--grep", "one")
            self.assertEqual((code, out), (0, "one hit\n"), err)
            self.assertLess(time.monotonic() - began, 20 * PATIENCE)
        self.server.shoal("stop", "--now", job)

    def test_all_jobs(self):
        jobs = [self.server.submit(job_text(f"many{i}", f"echo canary {i}")) for i in range(3)]
        for job in jobs:
            self.server.wait_for_end(job)
        out = self.logs("--all-jobs", "--grep", "canary \\d")
        self.assertEqual(out.splitlines(), [f"{jobs[i]} worker-{w} | canary {i}" for i in (2, 1, 0) for w in (0, 1)])
        self.assertEqual(len(self.logs("--all-jobs", "--grep", "canary", "-n", "3").splitlines()), 3)
        self.assertEqual(len(self.logs("--all-jobs", "--grep", "canary", "--role", "worker", "--index", "0").splitlines()), 3)
        self.assertEqual(self.logs("--all-jobs", "--grep", "canary", "--team", "other"), "")
        self.assertTrue(all(TIME.match(line) for line in self.logs("--all-jobs", "--grep", "canary", "--timestamps").splitlines()))
        with self.subTest("cursors"):
            found, after = [], ""
            while True:
                reply = self.server.get(f"/logs?grep=canary&limit=1{after}")
                self.assertEqual(reply.status, 200, reply)
                lines = [json.loads(line) for line in reply.body.decode().splitlines()]
                found += [line["text"] for line in lines if "text" in line]
                if "end" in lines[-1]:
                    break
                after = "&after=" + urllib.parse.quote(lines[-1]["next"])
            self.assertEqual(found, [f"canary {i}" for i in (2, 2, 1, 1, 0, 0)])
        with self.subTest("another team's token finds nothing"):
            token = self.server.make_user("stranger", "strangers", "operator")
            reply = self.server.get("/logs?grep=canary", token)
            self.assertEqual((reply.status, reply.body), (200, b'{"end":true}\n'))
            reply = self.server.get("/logs?grep=canary&team=default", token)
            self.assertEqual(reply.body, b'{"end":true}\n')
            self.assertEqual(self.server.get(f"/jobs/{jobs[0]}/logs/worker-0/0/times", token).status, 404)
        with self.subTest("bad requests"):
            for query in ("grep=(", "grep=", "after=x", "after=;a;b;c", "limit=0", "since=yesterday", "attempt=-1", "x=1"):
                self.assertEqual(self.server.get("/logs?" + query).status, 400, query)

    def test_compressed_and_removed(self):
        """A log that a server has compressed reads as before; a team's limits remove it, which command and request say."""
        script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo unfinished"
        server = self.server
        self.assertEqual(server.request("POST", "/teams", {"name": "small"}).status, 201)
        job = server.submit(job_text("packed", script), team="small")
        server.wait_for_end(job)
        logs = os.path.join(server.state, "jobs", job, "logs")
        self.assertTrue(poll_until(lambda: os.path.exists(f"{logs}/worker-1.0.log.zst") and os.path.exists(f"{logs}/worker-0.0.log.zst"),
                                   60 * PATIENCE), os.listdir(logs))
        self.assertFalse(os.path.exists(f"{logs}/worker-0.0.log"))
        self.assertEqual(self.logs("packed", "worker-0"), "".join(f"line {i}\n" for i in range(20000)) + "unfinished\n")
        self.assertEqual(self.logs("packed", "worker-0", "-n", "2"), "line 19999\nunfinished\n")
        self.assertEqual(self.logs("packed", "worker-1", "--grep", "e 1777[78]$", "--since", "1h"), "line 17777\nline 17778\n")
        found = server.get("/logs?grep=line%2019998&team=small").body.decode().splitlines()
        self.assertEqual(len(found), 3, found)  # of two tasks, and the end
        self.assertEqual(server.request("PUT", "/teams/small/policy", {"log_bytes": 1000}).status, 200)
        # The mark comes first, then the files go, then the record has a note.
        self.assertTrue(poll_until(lambda: b"removed by retention" in server.get(f"/jobs/{job}/events?limit=1000").body, 60 * PATIENCE))
        text = self.logs("packed", code=4)
        self.assertRegex(text, r"the logs of this job were removed by retention on \d{4}-\d\d-\d\d \d\d:\d\d UTC: the logs of team small are limited to 1000 bytes")
        notes = [e for e in server.get(f"/jobs/{job}/events?limit=1000").json["items"] if e["type"] == "note"]
        self.assertIn("removed by retention", json.dumps(notes))
        self.assertEqual(self.logs(self.job, "worker-0", "--grep", "^first"), "first\n")  # another team's stay


if __name__ == "__main__":
    unittest.main(verbosity=2)
