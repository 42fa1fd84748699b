"""`shoal server` with real jobs on this machine: submit, follow, stop; restarts of the server under running jobs."""
import json
import os
import stat
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import Events, Server, job_text, poll_until, said  # noqa: E402  pylint: disable=wrong-import-position

COUNT = "i=0; while [ $i -lt %d ]; do i=$((i+1)); echo line $i; sleep 0.02; done"


class ServerTest(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.__exit__)

    def test_first_start(self):
        self.server.start()
        token = os.path.join(self.server.state, "administrator.token")
        self.assertEqual(stat.S_IMODE(os.stat(token).st_mode), 0o600)
        self.assertEqual(self.server.ready["token_file"], token)
        self.assertEqual(self.server.get("/healthz", token=None).status, 200)
        self.assertEqual(self.server.get("/readyz", token=None).status, 200)
        me = self.server.get("/me").json
        self.assertEqual((me["user"], me["administrator"]), ("admin", True))
        with self.subTest("a second server on the directory"):
            code, out, err = self.server.home.run("server", "--state", self.server.state, "--listen", "127.0.0.1:0")
            self.assertNotEqual(code, 0, out)
            self.assertIn("another shoal server, process", err)
        with self.subTest("the token is made once"):
            self.assertEqual(self.server.stop(), 0)
            self.server.start()
            self.assertNotIn("token_file", self.server.ready)
            self.assertEqual(self.server.get("/me").status, 200)

    def test_refuses_the_network_without_tls(self):
        code, _, err = self.server.home.run("server", "--state", self.server.state, "--listen", "0.0.0.0:0")
        self.assertEqual(code, 2)
        self.assertIn("without TLS the server listens on the loopback only", err)

    def test_job_from_submission_to_end(self):
        self.server.start()
        job = self.server.submit(job_text(script="echo hello from $SHOAL_TASK"))
        record = self.server.wait_for_end(job)
        self.assertEqual(record["state"], "succeeded", record)
        self.assertEqual((record["team"], record["user"]), ("default", "admin"))
        log = self.server.get(f"/jobs/{job}/logs/worker-1/0")
        self.assertEqual(log.body, b"hello from worker/1/0\n")
        tasks = self.server.get(f"/jobs/{job}/tasks").json["items"]
        self.assertEqual(len(tasks), 2)
        events = self.server.get(f"/jobs/{job}/events").json["items"]
        self.assertEqual([e["type"] for e in events if e["type"] in ("submitted", "running", "ended")],
                         ["submitted", "running", "ended"])
        listed = self.server.get("/jobs?state=succeeded").json["items"]
        self.assertEqual([j["id"] for j in listed], [job])

    def test_stream_follows_logs_to_the_end(self):
        self.server.start()
        job = self.server.submit(job_text(script=COUNT % 50))
        stream = Events(self.server, f"/jobs/{job}/stream?logs=true")
        self.assertTrue(stream.wait(lambda e: e["event"] == "end"), stream.events[-3:])
        self.assertTrue(stream.closed.wait(30))
        text = "".join(e["data"]["text"] for e in stream.events if e["event"] == "log" and e["data"]["index"] == 0)
        self.assertEqual(text, "".join(f"line {i}\n" for i in range(1, 51)))
        self.assertEqual(stream.events[-1]["data"]["state"], "succeeded")

    def test_stop(self):
        self.server.start()
        job = self.server.submit(job_text(script="echo up; sleep 1000"))
        self.server.wait_for(job, ("running",))
        self.assertEqual(self.server.post(f"/jobs/{job}/stop", {}).status, 202)
        record = self.server.wait_for_end(job)
        self.assertEqual((record["state"], record["reason"]), ("cancelled", "stopped by admin"))

    def test_restart_under_running_jobs(self):
        self.server.start()
        job = self.server.submit(job_text(script=COUNT % 300))
        self.server.wait_for(job, ("running",))
        for kill in (self.server.kill, self.server.stop, self.server.kill, self.server.kill, self.server.kill):
            kill()
            self.server.start()
        record = self.server.wait_for_end(job)
        self.assertEqual(record["state"], "succeeded", record)
        whole = "".join(f"line {i}\n" for i in range(1, 301)).encode()
        for index in (0, 1):
            self.assertEqual(self.server.get(f"/jobs/{job}/logs/worker-{index}/0").body, whole)

    def test_all_events(self):
        self.server.start()
        stream = Events(self.server, "/events?after=now")
        job = self.server.submit(job_text())
        self.assertTrue(stream.wait(lambda e: e["data"]["job"] == job and e["data"]["type"] == "ended"))
        with self.subTest("a client that connects again misses nothing"):
            first = next(e for e in stream.events if e["data"]["type"] == "submitted")
            again = Events(self.server, "/events", headers={"Last-Event-ID": first["id"]})
            self.assertTrue(again.wait(lambda e: e["data"]["type"] == "ended"))
            self.assertEqual([e["data"] for e in again.events[:len(stream.events) - 1]],
                             [e["data"] for e in stream.events[1:]])
            again.close()
        stream.close()

    def test_idempotency(self):
        self.server.start()
        body = {"file": job_text()}
        first = self.server.post("/jobs", body, headers={"Idempotency-Key": "one"})
        again = self.server.post("/jobs", body, headers={"Idempotency-Key": "one"})
        self.assertEqual((first.status, again.status), (201, 201))
        self.assertEqual(first.json["id"], again.json["id"])
        self.assertEqual(again.headers["Idempotency-Replayed"], "true")
        other = self.server.post("/jobs", {"file": job_text("other")}, headers={"Idempotency-Key": "one"})
        self.assertEqual(other.status, 422)

    def test_conditional_change(self):
        self.server.start()
        job = self.server.submit(job_text(script="sleep 1000"))
        self.server.wait_for(job, ("running",))
        old = self.server.post(f"/jobs/{job}/stop", {}, headers={"If-Match": '"1"'})
        self.assertEqual(old.status, 412, old)
        self.assertIn("has changed", old.detail)
        self.server.post(f"/jobs/{job}/stop", {"now": True})
        self.assertEqual(self.server.wait_for_end(job)["state"], "cancelled")

    def test_a_follower_of_many_tasks(self):
        self.server.start()
        job = self.server.submit(job_text("many", "echo hello"))
        self.server.wait_for_end(job)
        positions = ",".join(f"worker-{i}.{attempt}:{123456789 if i > 1 else 2}" for i in range(2000) for attempt in range(3))
        reply = self.server.get(f"/jobs/{job}/stream?logs=true&from={positions}")
        self.assertIn(reply.status, (414, 431))
        reply = self.server.post(f"/jobs/{job}/stream", {"logs": True, "events": False, "from": positions})
        self.assertEqual(reply.status, 200, reply)
        self.assertEqual(reply.body.count(b'"text":"llo\\n"'), 2, reply.body)
        self.assertIn(b"event: end", reply.body)
        self.assertEqual(self.server.post(f"/jobs/{job}/stream", {"from": "nowhere"}).status, 422)

    def test_backup_and_restore(self):
        self.server.start()
        done = self.server.submit(job_text("done", "echo kept; echo model > $SHOAL_OUTPUT/model"))
        self.server.wait_for_end(done)
        running = self.server.submit(job_text("running", "sleep 1000"))
        self.server.wait_for(running, ("running",))
        home, copy = self.server.home, self.server.home.path("copy")
        code, out, err = home.run("server", "backup", copy, "--state", self.server.state)
        self.assertEqual(code, 0, err)
        self.assertEqual(home.run("server", "backup", copy, "--state", self.server.state)[0], 1)
        code, _, err = home.run("server", "restore", copy, "--state", self.server.state)
        self.assertIn("another shoal server", err)
        token = self.server.admin
        self.server.post(f"/jobs/{running}/stop", {"now": True})
        self.server.wait_for_end(running)
        self.server.stop()
        other = Server(home)
        other.state = home.path("restored")
        code, _, err = home.run("server", "restore", copy, "--state", other.state)
        self.assertEqual(code, 0, err)
        other.start()
        self.addCleanup(other.kill)
        self.assertEqual(other.get(f"/jobs/{done}", token).json["state"], "succeeded")
        self.assertEqual(other.get(f"/jobs/{done}/logs/worker-0/0", token).body, b"kept\n")
        self.assertEqual(other.get(f"/jobs/{done}/outputs/worker-1/0?path=model", token).body, b"model\n")


if __name__ == "__main__":
    unittest.main()
