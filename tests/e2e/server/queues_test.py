"""`shoal server --queues`: quotas, priorities and preemption of real jobs, also across a restart of the server."""
import ctypes
import json
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import Server  # noqa: E402  pylint: disable=wrong-import-position
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PATIENCE, Home, poll_until, said  # noqa: E402  pylint: disable=wrong-import-position

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


class Hold:
    """A process whose main thread is held by ptrace, as by a debugger: no signal but SIGKILL lets it go on."""
    SEIZE, INTERRUPT, DETACH, WAIT_ALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self, pid):
        self.pid, self.libc = pid, ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.ask(self.SEIZE)
        self.ask(self.INTERRUPT)
        os.waitpid(pid, self.WAIT_ALL)

    def ask(self, what):
        if self.libc.ptrace(what, self.pid, None, None) == -1:
            raise OSError(ctypes.get_errno(), f"ptrace {what:#x} of {self.pid}")

    def release(self):
        pid, self.pid = self.pid, 0
        if pid and os.path.exists(f"/proc/{pid}"):
            self.libc.ptrace(self.DETACH, pid, None, None)


class QueuesTest(unittest.TestCase):
    def setUp(self):
        self.home = Home()
        self.go = self.home.path("go")
        self.policy = self.home.write("queues.yaml", POLICY)
        self.server = Server(self.home, ("--queues", self.policy))
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
        self.assertTrue(poll_until(condition, 60 * PATIENCE), what() if callable(what) else what)

    def state(self, job):
        return self.server.get(f"/jobs/{job}").json["state"]

    def reason(self, job):
        return self.server.get(f"/jobs/{job}").json.get("reason", "")

    def test_quotas_and_priorities(self):
        red = self.submit("red", "red")
        self.wait(lambda: self.starts("red") == 1, "the first job")
        later = self.submit("later", "default")  # the default queue, red
        first = self.submit("first", "red", memory="3Gi")
        self.wait(lambda: self.server.get(f"/jobs/{first}/why").json["changes"], lambda: f"waits as {self.reason(first)!r}")
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

    def finish(self, *jobs):
        with open(self.go, "w", encoding="utf-8"):
            pass
        for job in jobs:
            self.server.wait_for(job, ("succeeded",))
            self.assertEqual(self.state(job), "succeeded", self.server.get(f"/jobs/{job}").json)

    def queue(self, name, token=""):
        return next(queue for queue in self.server.get("/queues", token).json["items"] if queue["name"] == name)

    def shoal(self, *arguments, expected=0):
        code, out, err = self.server.shoal(*arguments)
        self.assertEqual(code, expected, out + err)
        return out + err

    def test_the_policy_is_replaced_while_jobs_run_and_wait(self):
        red = self.submit("red", "red")
        self.wait(lambda: self.starts("red") == 1, "the first job")
        waiting = self.submit("waiting", "red")
        self.wait(lambda: self.reason(waiting) != "", "a reason")
        # A policy that strands jobs, or has errors, changes nothing.
        self.home.write("queues.yaml", POLICY.replace("  red:", "  green:").replace("default_queue: red", "default_queue: blue"))
        out = self.shoal("queue", "reload", expected=1)
        self.assertIn(f"the policy would strand jobs: red ({red}, queue 'red'), waiting ({waiting}, queue 'red')", out)
        self.home.write("queues.yaml", POLICY + "  green: {parent: al}\n")
        out = self.shoal("queue", "reload", expected=2)
        self.assertRegex(out, r"queues.yaml:6:\d+: queues.green.parent: got 'al', expected a queue of this file")
        self.server.process.send_signal(signal.SIGHUP)
        self.wait(lambda: "the queues stay as they were" in said(self.server.process), said(self.server.process))
        self.assertEqual([queue["name"] for queue in self.server.get("/queues").json["items"]], ["red", "blue"])
        self.assertEqual((self.state(red), self.state(waiting)), ("running", "pending"))
        # More quota starts the waiting job; the running one goes on.
        self.home.write("queues.yaml", POLICY.replace("red: {quota: {here: {memory: 4Gi}}}", "red: {quota: {here: {memory: 8Gi}}}"))
        self.server.process.send_signal(signal.SIGHUP)
        self.wait(lambda: self.starts("waiting") == 1, self.reason(waiting))
        self.assertEqual(self.starts("red"), 1)
        self.home.write("queues.yaml", POLICY)
        self.assertIn("in force", self.shoal("queue", "reload"))
        self.assertEqual(self.queue("red")["flavors"][0]["resources"][0]["nominal"], 4 << 30)
        self.assertEqual((self.state(red), self.state(waiting)), ("running", "running"))
        entries = [entry for entry in self.server.get("/audit").json["items"] if entry["action"] == "reloadQueues"]
        self.assertEqual([entry["detail"].get("status", entry["detail"].get("by")) for entry in reversed(entries)],
                         [409, 422, "SIGHUP", "SIGHUP", 204])
        self.finish(red, waiting)

    def test_a_queue_on_hold_starts_nothing_until_it_is_resumed(self):
        red = self.submit("red", "red")
        self.wait(lambda: self.starts("red") == 1, "the first job")
        self.assertIn("starts no more jobs", self.shoal("queue", "hold", "red"))
        held = self.submit("held", "red", memory="1Mi")
        self.wait(lambda: "queue red is on hold" in self.reason(held), self.reason(held))
        # The next server, and another policy, keep it.
        self.server.kill()
        self.server.start()
        self.shoal("queue", "reload")
        self.wait(lambda: "queue red is on hold" in self.reason(held), self.reason(held))
        self.assertEqual(self.queue("red")["mode"], "hold")
        self.assertEqual((self.state(red), self.state(held)), ("running", "pending"))
        self.assertIn("there is no queue 'green'", self.shoal("queue", "hold", "green", expected=4))
        self.shoal("queue", "drain", "red")
        self.wait(lambda: self.state(red) == "pending", self.state(red))
        self.shoal("queue", "resume", "red")
        self.wait(lambda: self.starts("red") == 2 and self.starts("held") == 1 or self.reason(held) != "", self.reason(held))
        self.finish(red, held)

    def test_queues_are_shown_without_the_names_of_other_teams_jobs(self):
        ann = self.server.make_user("ann", "vision")
        bob = self.server.make_user("bob", "speech", "operator")
        first = self.server.submit(JOB % ("first", "red", 0, "4Gi", self.home.path("first"), self.go), ann)
        self.wait(lambda: self.starts("first") == 1, "the first job")
        second = self.server.submit(JOB % ("second", "red", 0, "4Gi", self.home.path("second"), self.go), ann)
        third = self.server.submit(JOB % ("third", "red", 0, "3Gi", self.home.path("third"), self.go), bob)
        self.wait(lambda: self.queue("red")["waiting"] == 2, self.queue("red"))
        seen = self.queue("red", bob)
        self.assertEqual((seen["running"], seen["waiting"]), (1, 2))
        gib = 1 << 30
        self.assertEqual(seen["flavors"], [{"flavor": "here", "resources": [
            {"resource": "memory", "nominal": 4 * gib, "used": 4 * gib, "borrowed": 0, "lent": 0, "limited": True}]}])
        self.assertEqual([job.get("id") for job in seen["jobs"]], [None, third])
        text = json.dumps(seen)
        for name in (first, second, "ann"):
            self.assertNotIn(name, text)
        self.assertIn("a job of team vision", seen["jobs"][1]["reason"])
        self.assertEqual([job["id"] for job in self.queue("red", ann)["jobs"] if "id" in job], [second])
        code, out, err = self.server.shoal("queue", token=bob)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"red +open +1 +[0-9.]+ +1 +2 +here +4 GiB memory +4 GiB memory")
        self.assertIn(f"  {third}: ", out)
        # Only operators of a team that the policy names may hold a queue.
        self.assertEqual(self.server.request("PUT", "/queues/red/mode", {"mode": "hold"}, ann).status, 403)
        reply = self.server.request("PUT", "/queues/red/mode", {"mode": "hold"}, bob)
        self.assertEqual(reply.status, 403, reply)
        self.assertIn("the policy names in `operators`", reply.detail)
        self.home.write("queues.yaml", POLICY.replace("red: {quota:", "red: {operators: speech, quota:"))
        self.shoal("queue", "reload")
        self.assertEqual(self.server.request("PUT", "/queues/red/mode", {"mode": "hold"}, bob).status, 204)
        self.assertEqual(self.server.request("PUT", "/queues/blue/mode", {"mode": "hold"}, bob).status, 403)
        self.assertEqual(self.server.request("PUT", "/queues/red/mode", {"mode": "open"}, bob).status, 204)
        self.finish(first, second, third)

    def test_a_submission_is_tried_first(self):
        file = self.home.write("job.yaml", JOB % ("tried", "red", 0, "4Gi", self.home.path("tried"), self.go))
        self.assertIn("would start now on here", self.shoal("submit", file, "--dry-run"))
        red = self.submit("red", "red")
        self.wait(lambda: self.starts("red") == 1, "the first job")
        for command in ("submit", "run"):
            out = self.shoal(command, file, "--dry-run")
            self.assertRegex(out, r"would wait: .*needs 4 GiB memory")
            self.assertIn("It would start now:\n", out)
            self.assertIn("  in queue blue\n", out)
        reply = json.loads(self.shoal("submit", file, "--dry-run", "--json", "--set", "queue=blue"))
        self.assertEqual((reply["starts"], reply["preempts"], reply["flavor"]), (True, False, "here"))
        out = self.shoal("submit", file, "--dry-run", "--set", "roles.worker.resources.memory=9Gi", expected=1)
        self.assertIn("would be refused: tried", out)
        self.assertIn("can never start", out)
        self.assertIn("expected one of red, blue", self.shoal("submit", file, "--dry-run", "--set", "queue=x", expected=2))
        self.assertEqual(len(self.server.get("/jobs").json["items"]), 1)
        self.finish(red)

    def test_run_times_are_learnt(self):
        text = JOB % ("train", "red", 0, "4Gi", self.home.path("train"), self.go)
        waiting = JOB % ("waiting", "red", 0, "4Gi", self.home.path("waiting"), self.go)
        brief = text.replace("while", "sleep 1; exit 0; while")
        self.server.wait_for(self.server.submit(brief), ("succeeded",))
        self.wait(lambda: self.queue("red")["running"] == 0, "the end of the first run")
        train = self.server.submit(text)
        self.wait(lambda: self.starts("train") == 2, "the second run")
        job = self.server.submit(waiting)
        self.wait(lambda: self.reason(job) != "", "a reason")
        why = self.server.get(f"/jobs/{job}/why").json
        self.assertRegex(why["forecast"], r"^expected to start in about \d+ \w+ \(50 % sure\)$")
        # The next server has learnt it too.
        self.server.kill()
        self.server.start()
        self.wait(lambda: self.server.get(f"/jobs/{job}/why").json["forecast"] != "",
                  self.server.get(f"/jobs/{job}/why").json)
        self.assertIn("It is expected to start in about", self.shoal("why", job))
        self.finish(train, job)

    def test_a_job_that_does_not_stop_is_left_alone(self):
        frozen = self.server.submit(JOB % ("frozen", "red", 0, "2Gi", self.home.path("frozen"), self.go) + "limits: {stop_grace: 1s}\n")
        self.wait(lambda: self.starts("frozen") == 1, "the first job")
        coordinator = next(process.pid for process in self.home.processes() if process.kind == "coordinator")
        hold = Hold(coordinator)  # a stopped process would be continued by whoever asks it to end
        self.addCleanup(hold.release)
        second = self.submit("second", "red", priority=1, memory="2Gi")
        self.wait(lambda: self.starts("second") == 1, "the second job")
        high = self.submit("high", "red", priority=5, memory="2Gi")
        self.wait(lambda: self.starts("high") == 1, lambda: self.reason(high))
        events = str(self.server.get(f"/jobs/{high}/events").json["items"])
        self.assertIn(f"{frozen} was asked 2 times", events)
        self.wait(lambda: self.state(second) == "pending", lambda: self.state(second))
        self.assertEqual(self.starts("frozen"), 1)
        hold.release()
        self.finish(high, second)

    def test_a_wrong_policy_is_refused_at_the_start(self):
        file = self.home.write("wrong.yaml", POLICY + "  green: {parent: al}\n")
        code, _, err = self.home.run("server", "--state", self.home.path("other"), "--queues", file, "--listen",
                                     "127.0.0.1:0")
        self.assertEqual(code, 2, err)
        self.assertRegex(err, r"wrong.yaml:6:\d+: queues.green.parent: got 'al', expected a queue of this file")


if __name__ == "__main__":
    unittest.main()
