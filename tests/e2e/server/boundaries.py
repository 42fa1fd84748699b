"""A server that is killed (-9) before or after a given commit to its store, and started again: the job ends as it would have, no
line of its log is lost, nothing is recorded or run twice, and nothing is left. Used by boundaries_test.py (some boundaries) and
boundaries_slow_test.py (all).

SHOAL_TEST_ENGINE=docker|slurm runs the jobs there; script/test-cluster starts these for a command."""
import http.client
import json
import os
import time
import unittest

from server_harness import PATIENCE, Server, poll_until, said

ENGINE = os.environ.get("SHOAL_TEST_ENGINE", "local")
LINES = 12
_COUNT = f"for i in $(seq 1 {LINES}); do echo line $i; sleep 0.02; done"
_IMAGE = os.environ.get("SHOAL_TEST_IMAGE", "")


def _job(name, role, rest=""):
    image = f"image: {_IMAGE}\n" if _IMAGE else ""
    return f"name: {name}\n{image}roles:\n  worker: {{{role}}}\nlimits: {{gather: 120s}}\n{rest}"


def _command(script):
    return f'command: [sh, -c, "{script}"]'


class Shape:
    """A kind of job: its file, what is done to it, and how it must end. `runs`: attempts of each task."""

    def __init__(self, text, state, runs, act=None):
        self.text, self.state, self.runs, self.act = text, state, runs, act


def _post(action, body=None):
    def act(server, job):
        log = os.path.join(server.state, "jobs", job, "logs", "worker-0.0.log")
        poll_until(lambda: server.process.poll() is not None or os.path.exists(log) and os.path.getsize(log) > 0, 60 * PATIENCE)
        server.wait_for(job, ("running",), 120)
        return server.post(f"/jobs/{job}/{action}", body)

    return act


_UNTIL_TERM = "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.02; done"
SHAPES = {
    "succeeds": Shape(_job("succeeds", f"replicas: 2, {_command(_COUNT)}"), "succeeded", {"worker/0": 1, "worker/1": 1}),
    "restarts": Shape(_job("restarts", f"replicas: 2, {_command(_COUNT + '; [ $SHOAL_INDEX$SHOAL_ATTEMPT != 00 ]')}, "
                           "restart: {when: always, limit: 2}"), "succeeded", {"worker/0": 2, "worker/1": 1}),
    "fails": Shape(_job("fails", f"replicas: 1, {_command(_COUNT + '; exit 3')}"), "failed", {"worker/0": 1}),
    "stopped": Shape(_job("stopped", f"replicas: 1, {_command(_UNTIL_TERM)}"), "cancelled", {"worker/0": 1}, _post("stop")),
}


class BoundaryTest(unittest.TestCase):
    """`faulty`: a server that dies at a commit; `server`: the one that goes on."""

    def setUp(self):
        self.server = Server(options=("--engine", ENGINE))
        self.addCleanup(self.server.__exit__)

    def start(self, faults=""):
        """Starts the server; it may be dead before it is ready. Whether it is ready."""
        self.server.process = self.server.home.start(
            "server", "--json", "--state", self.server.state, "--listen", f"127.0.0.1:{self.server.port}", *self.server.options,
            env={"SHOAL_FAULTS": faults} if faults else None)
        poll_until(lambda: '"ready"' in said(self.server.process) or self.server.process.poll() is not None, 60 * PATIENCE)
        lines = [line for line in said(self.server.process).splitlines() if line.startswith("{")]
        if not lines:
            self.assertIsNotNone(self.server.process.poll(), said(self.server.process))
            return False
        self.server.ready = json.loads(lines[0])
        self.server.port = int(self.server.ready["url"].rsplit(":", 1)[1])
        return True

    def killed(self):
        return self.server.process.poll() is not None

    def attempt(self, call):
        """The call's result; None if the server died."""
        try:
            return call()
        except (OSError, KeyError, ValueError, http.client.HTTPException) as error:
            if not poll_until(self.killed, 5 * PATIENCE):
                raise AssertionError(f"the server lives and did not answer: {error}") from error
            return None

    def submit(self, text, key):
        """Sends the submission until a server has answered it: the job's id."""
        for _ in range(20):
            reply = self.attempt(lambda: self.server.request("POST", "/jobs", {"file": text}, headers={"Idempotency-Key": key}))
            if reply is not None:
                self.assertEqual(reply.status, 201, reply)
                return reply.json["id"]
            self.start()
        raise AssertionError("the submission is never answered")

    def check(self, shape, job):
        record = self.server.wait_for_end(job, 180)
        events = self.server.get(f"/jobs/{job}/events?limit=1000").json["items"]
        shown = "\n".join(f"{e['seq']} {e['type']} {json.dumps(e['body'])[:200] if 'body' in e else ''}" for e in events)
        self.assertEqual(record["state"], shape.state, shown)
        kinds = [event["type"] for event in events]
        for once in ("submitted", "ended"):
            self.assertEqual(kinds.count(once), 1, (once, shown))
        # One that waits in the engine's queue has the reasons as further entries.
        for most in ("admitted", "running") + (("starting",) if ENGINE != "slurm" else ()):
            self.assertLessEqual(kinds.count(most), 1, (most, shown))
        ends = [f"{e['body']['role']}/{e['body']['index']}/{e['body']['attempt']}" for e in events
                if e["type"] == "task" and e["body"]["state"] == "ended"]
        expected = [f"{task}/{attempt}" for task, count in shape.runs.items() for attempt in range(count)]
        if shape.act and not ends and "running" not in kinds:
            return  # it was stopped before it ran
        self.assertEqual(sorted(ends), sorted(expected), shown)
        for end in ends:
            role, index, attempt = end.split("/")
            log = self.server.get(f"/jobs/{job}/logs/{role}-{index}/{attempt}").body.decode()
            log = log.replace("Terminated\n", "")  # of the shell's own child
            wanted = "up\nsaved\n" if shape.act else "".join(f"line {i}\n" for i in range(1, LINES + 1))
            self.assertEqual(log, wanted, (job, end, shown))

    def nothing_is_left(self):
        def others():
            return [p for p in self.server.home.processes() if p.pid != self.server.process.pid]

        self.assertTrue(poll_until(lambda: not others(), 30 * PATIENCE, 0.05), others())
        left = os.path.join(self.server.state, "leftovers")
        self.assertTrue(poll_until(lambda: not os.path.isdir(left) or not os.listdir(left), 30 * PATIENCE, 0.05))

    def boundary(self, name, point, number):
        """One job whose server is killed at its commit `number`; False if it did not come to that commit."""
        shape = SHAPES[name]
        with self.subTest(f"{name} {point}@{number}"):
            ready = self.start(f"{point}=kill@{number}")
            faulty = self.server.process
            key = f"{name}-{point}-{number}-{time.monotonic_ns()}"
            if not ready:
                self.start()
            job = self.submit(shape.text, key)
            if shape.act:
                for _ in range(3):
                    if self.attempt(lambda: shape.act(self.server, job)) is not None:
                        break
                    self.start()
            ended = self.attempt(lambda: self.server.wait_for_end(job, 180))
            died = ended is None or faulty.poll() is not None
            self.start_clean()
            self.check(shape, job)
            self.nothing_is_left()
            return died
        return True

    def start_clean(self):
        """Goes on with a server without faults: reads of logs are commits too, of the audit log."""
        if not self.killed():
            self.server.kill()
        self.assertTrue(self.start(), said(self.server.process))

    def all_boundaries(self, name, point, numbers):
        """Kills at each of the numbers, as far as there are so many commits; how many kills happened."""
        happened = 0
        for number in numbers:
            died = self.boundary(name, point, number)
            self.server.kill()
            if not died:
                break
            happened += 1
        return happened

    def crowd(self, count, first=1):
        """`count` jobs of all shapes at once; the server is killed at its commit 1, then 2, … until all have ended."""
        shapes = [shape for shape in SHAPES.values() if shape.act is None]
        self.assertTrue(self.start())
        jobs = [(shapes[i % len(shapes)], self.submit(shapes[i % len(shapes)].text, f"crowd-{i}")) for i in range(count)]
        self.server.kill()
        kills = 0
        for number in range(first, 200):
            point = ("store.commit", "store.committed")[number % 2]
            if self.start(f"{point}=kill@{number}"):
                poll_until(self.killed, 20 * PATIENCE, 0.02)
            if not self.killed():
                break
            kills += 1
        self.start_clean()
        for shape, job in jobs:
            self.check(shape, job)
        self.nothing_is_left()
        return kills
