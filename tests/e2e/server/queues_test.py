"""`shoal server --queues`: quotas, priorities and preemption of real jobs, also across a restart of the server."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import Server  # noqa: E402  pylint: disable=wrong-import-position
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PATIENCE, Home, poll_until  # noqa: E402  pylint: disable=wrong-import-position

POLICY = """\
flavors: {here: {engine: local}}
default_queue: red
queues:
  red: {quota: {here: {memory: 4Gi}}}
  blue: {quota: {here: {memory: 4Gi}}}
"""
# Counts its starts in a file; ends when `go` is there, and saves when it is told to stop.
JOB = """\
name: %s
queue: %s
priority: %d
roles:
  worker:
    replicas: 1
    resources: {memory: %s}
    command: [sh, -c, 'echo start >> %s; trap "exit 0" TERM; while [ ! -e %s ]; do sleep 0.05; done']
"""


class QueuesTest(unittest.TestCase):
    def setUp(self):
        self.home = Home()
        self.go = self.home.path("go")
        policy = self.home.write("queues.yaml", POLICY)
        self.server = Server(self.home, ("--queues", policy))
        self.server.start()

    def tearDown(self):
        self.server.__exit__()

    def submit(self, name, queue, priority=0, memory="4Gi"):
        return self.server.submit(JOB % (name, queue, priority, memory, self.home.path(name), self.go))

    def starts(self, name):
        try:
            with open(self.home.path(name), encoding="utf-8") as file:
                return len(file.readlines())
        except FileNotFoundError:
            return 0

    def wait(self, condition, what):
        self.assertTrue(poll_until(condition, 60 * PATIENCE), what)

    def state(self, job):
        return self.server.get(f"/jobs/{job}").json["state"]

    def reason(self, job):
        return self.server.get(f"/jobs/{job}").json.get("reason", "")

    def test_quotas_and_priorities(self):
        red = self.submit("red", "red")
        self.wait(lambda: self.starts("red") == 1, "the first job")
        later = self.submit("later", "default")  # the default queue, red
        first = self.submit("first", "red", memory="3Gi")
        self.wait(lambda: self.reason(first) != "", "a reason")
        why = self.server.get(f"/jobs/{first}/why").json
        self.assertEqual(why["state"], "pending")
        self.assertIn("in queue blue", why["changes"])
        self.assertIn("red", why["reason"])
        code, out, err = self.server.shoal("why", first)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, rf"{first} waits: .*\nIt would start now:\n(  .*\n)*  in queue blue")
        code, out, err = self.server.shoal("why", red)
        self.assertIn("does not wait: it is running", out)
        blue = self.submit("blue", "blue")
        self.wait(lambda: self.starts("blue") == 1, "the quota of another queue")
        self.wait(lambda: "needs 4 GiB memory" in self.reason(later), self.reason(later))
        self.assertEqual(self.state(first), "pending")
        reply = self.server.post("/jobs", {"file": JOB % ("x", "green", 0, "1Gi", "/dev/null", self.go)})
        self.assertEqual(reply.status, 422, reply)
        self.assertIn("queue: got green, expected one of red, blue", reply.detail)
        with open(self.go, "w", encoding="utf-8"):
            pass
        for job in (red, later, first, blue):
            self.server.wait_for(job, ("succeeded",))

    def test_a_more_important_job_preempts(self):
        low = self.submit("low", "red")
        self.wait(lambda: self.starts("low") == 1, "the first job")
        high = self.submit("high", "red", priority=5)
        self.wait(lambda: self.starts("high") == 1, "the preempting job")
        self.wait(lambda: self.state(low) == "pending", self.state(low))
        events = self.server.get(f"/jobs/{low}/events").json["items"]
        self.assertTrue(any("preempted for high" in str(event) for event in events), events)
        self.assertEqual(self.starts("low"), 1)
        # The next server knows who holds what, and who waits.
        self.server.kill()
        self.server.start()
        self.assertIn(self.state(high), ("admitted", "starting", "running"))
        self.assertEqual(self.state(low), "pending")
        with open(self.go, "w", encoding="utf-8"):
            pass
        for job in (high, low):
            self.server.wait_for(job, ("succeeded",))
        self.assertEqual(self.starts("low"), 2)

    def test_a_server_that_dies_while_it_preempts(self):
        low = self.submit("low", "red")
        self.wait(lambda: self.starts("low") == 1, "the first job")
        high = self.submit("high", "red", priority=5)
        self.wait(lambda: self.state(low) != "running" or self.starts("high") == 1, "the preemption")
        self.server.kill()
        self.server.start()
        self.wait(lambda: self.starts("high") == 1, self.state(high))
        self.wait(lambda: self.state(low) == "pending", self.state(low))
        with open(self.go, "w", encoding="utf-8"):
            pass
        for job in (high, low):
            self.server.wait_for(job, ("succeeded",))

    def test_a_wrong_policy_is_refused_at_the_start(self):
        file = self.home.write("wrong.yaml", POLICY + "  green: {parent: al}\n")
        code, _, err = self.home.run("server", "--state", self.home.path("other"), "--queues", file, "--listen",
                                     "127.0.0.1:0")
        self.assertEqual(code, 2, err)
        self.assertRegex(err, r"wrong.yaml:6:\d+: queues.green.parent: got 'al', expected a queue of this file")


if __name__ == "__main__":
    unittest.main()
