"""A job that stands still is said to be stalled, with what its processes wait for; one of whose tasks computes is not. Job files
against the real binary. SHOAL_BIN names the binary."""
import json
import unittest

import harness

# Worker 1 waits for a peer that never answers, over a real connection.
HUNG = """\
name: hung
roles:
  worker:
    replicas: 2
    restart: {limit: 1}
    ports: [main]
    command:
      - python3
      - -u
      - -c
      - |
        import json, os, select, signal, socket
        if os.environ["SHOAL_ATTEMPT"] == "@FINE@":
            raise SystemExit(0)
        host, port = json.loads(os.environ["SHOAL_CLUSTER"])["roles"]["worker"][0].split(":")
        if os.environ["SHOAL_INDEX"] == "0":
            server = socket.create_server((host, int(port)), reuse_port=True)
            peer = server.accept()
            print("serving nobody")
            signal.pause()
        while True:
            try:
                server = socket.create_connection((host, int(port)))
                break
            except ConnectionRefusedError:
                select.select([], [], [], 0.05)
        server.send(b"x" * 77)
        print("waiting for an answer")
        server.recv(1)
limits: {stall: 5s, on_stall: @DO@, stop_grace: 1s}
"""
# Nobody prints; worker 0 computes for longer than the limit while worker 1 sleeps.
BUSY = """\
name: busy
roles:
  worker:
    replicas: 2
    command:
      - python3
      - -c
      - |
        import os, select, time
        end = time.monotonic() + 8
        while os.environ["SHOAL_INDEX"] == "0" and time.monotonic() < end:
            sum(range(100000))
        if os.environ["SHOAL_INDEX"] == "1":
            select.select([], [], [], 8)
limits: {stall: 5s, on_stall: fail}
"""


class StallTest(harness.JobsTest):
    def shown(self, name):
        code, out, err = self.home.run("show", name, "--json")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def test_the_job_fails_and_the_evidence_is_kept(self):
        code, out, err = self.go(HUNG.replace("@DO@", "fail").replace("@FINE@", "-"))
        self.assertEqual(code, 1, out + err)
        self.assertIn("the job stalled: no task has printed or reported anything", err)
        events = self.shown("hung")["events"]
        (stalled,) = [event for event in events if event["type"] == "stalled"]
        tasks = {task["index"]: task for task in stalled["body"]["tasks"]}
        self.assertEqual(tasks[1]["last_line"], "waiting for an answer")
        self.assertGreaterEqual(tasks[1]["last_line_ms"], 5000)
        self.assertEqual([process["name"] for process in tasks[0]["processes"]], ["python3"])
        self.assertTrue(tasks[1]["processes"][0]["waits"])
        # What worker 1 has sent lies unread at worker 0, and each says who the other is.
        (there,) = tasks[0]["connections"]
        (here,) = tasks[1]["connections"]
        self.assertEqual(there["unread"], 77)
        self.assertEqual((here["local"], here["peer"]), (there["peer"], there["local"]))
        # Stored before anything was done about it.
        kinds = [event["type"] for event in events]
        self.assertLess(kinds.index("stalled"), kinds.index("finishing"))
        code, text, err = self.home.run("show", "hung")
        self.assertEqual(code, 0, err)
        self.assertIn("worker-1 has stood still for", text)
        self.assertIn("77 bytes unread", text)

    def test_all_start_again_and_end_well(self):
        code, out, err = self.go(HUNG.replace("@DO@", "restart").replace("@FINE@", "1"))
        self.assertEqual(code, 0, out + err)
        self.assertIn("all tasks are started again, restart 1 of 1 for this", out)
        self.assertIn("the job makes progress again", out)

    def test_it_is_only_said_by_default(self):
        job = self.home.start("run", self.home.write(
            "job.yaml", HUNG.replace("on_stall: @DO@, ", "").replace("@FINE@", "-")))
        self.assertTrue(harness.poll_until(
            lambda: "stalled" in self.home.run("jobs")[1], 30))
        self.assertIn("running", self.home.run("jobs")[1])
        code, _, err = self.home.run("stop", "hung", "--now")
        self.assertEqual(code, 0, err)
        job.wait(timeout=30)
        self.assertEqual(self.home.leftovers(), [])

    def test_a_job_of_which_one_task_computes_is_not_stalled(self):
        code, out, err = self.go(BUSY)
        self.assertEqual(code, 0, out + err)
        self.assertNotIn("stalled", out + err)


if __name__ == "__main__":
    unittest.main()
