"""`shoal server --queues` resizes elastic jobs: growth, shrinking before anybody is preempted, a person's number, a restart of the server."""
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
elastic: {pause: 100ms}
"""
# Tasks of 1 GiB that end when a file is there.
JOB = """\
name: %s
limits: {stop_grace: 20s}
roles:
  worker:
    replicas: %s
    resources: {memory: 1Gi}
    command: [sh, -c, 'echo start >> %s; trap "exit 0" TERM; while [ ! -e %s ]; do sleep 0.05; done']
"""
GIB = 1 << 30


class ElasticQueueTest(unittest.TestCase):
    def setUp(self):
        self.home = Home()
        self.server = Server(self.home, ("--queues", self.home.write("queues.yaml", POLICY)))
        self.server.start()

    def tearDown(self):
        self.server.__exit__()

    def submit(self, name, replicas, go):
        return self.server.submit(JOB % (name, replicas, self.home.path(name), self.home.path(go)))

    def wait(self, condition, what):
        self.assertTrue(poll_until(condition, 90 * PATIENCE), what() if callable(what) else what)

    def running(self, job):
        tasks = self.server.get(f"/jobs/{job}/tasks").json["items"]
        return sum(task["role"] == "worker" and task["state"] == "running" for task in tasks)

    def used(self):
        return self.server.get("/queues").json["items"][0]["flavors"][0]["resources"][0]["used"] // GIB

    def state(self, job):
        return self.server.get(f"/jobs/{job}").json["state"]

    def events(self, job):
        return str(self.server.get(f"/jobs/{job}/events").json["items"])

    def open(self, go, *jobs):
        self.home.write(go, "")
        for job in jobs:
            self.server.wait_for(job, ("succeeded",))
            self.assertEqual(self.state(job), "succeeded", self.events(job))

    def test_it_grows_into_what_is_free_and_shrinks_before_anybody_is_preempted(self):
        elastic = self.submit("elastic", "1\n    min: 1\n    max: 4", "go")
        self.wait(lambda: self.running(elastic) == 4, lambda: self.events(elastic))
        self.assertEqual(self.used(), 4)
        other = self.submit("other", 2, "other-go")
        self.wait(lambda: self.running(other) == 2, lambda: self.events(elastic) + self.events(other))
        self.assertEqual(self.running(elastic), 2)
        self.assertEqual(self.state(elastic), "running")
        self.assertEqual(self.used(), 4)
        self.assertIn("(by the queue)", self.events(elastic))
        self.assertNotIn("preempted", self.events(elastic))
        # The next server knows both sizes, and lets it grow again.
        self.server.kill()
        self.server.start()
        self.wait(lambda: self.used() == 4, self.used)
        self.assertEqual((self.running(elastic), self.running(other)), (2, 2))
        self.open("other-go", other)
        self.wait(lambda: self.running(elastic) == 4, lambda: self.events(elastic))
        self.open("go", elastic)

    def test_a_persons_number_is_the_most_from_then_on(self):
        elastic = self.submit("elastic", "1\n    min: 1\n    max: 3", "go")
        self.wait(lambda: self.running(elastic) == 3, lambda: self.events(elastic))
        code, out, err = self.server.shoal("scale", elastic, "worker=2")
        self.assertEqual(code, 0, out + err)
        self.wait(lambda: self.running(elastic) == 2 and self.used() == 2, lambda: self.events(elastic))
        self.server.kill()
        self.server.start()
        other = self.submit("other", 2, "other-go")  # needs what the person gave back
        self.wait(lambda: self.running(other) == 2, lambda: self.events(other))
        self.assertEqual(self.running(elastic), 2)
        code, out, err = self.server.shoal("scale", elastic, "worker=3")
        self.assertNotEqual(code, 0, out)
        self.assertIn("queue red has room for 0 more now, got 1 more", err)
        self.open("other-go", other)
        self.wait(lambda: self.used() == 2, self.used)
        third = self.submit("third", 1, "go")
        self.wait(lambda: self.running(third) == 1, lambda: self.events(third))
        self.assertEqual(self.running(elastic), 2)  # it has not grown meanwhile
        code, out, err = self.server.shoal("scale", elastic, "worker=3")
        self.assertEqual(code, 0, out + err)
        self.wait(lambda: self.running(elastic) == 3 and self.used() == 4, lambda: self.events(elastic))
        self.open("go", elastic, third)

    def test_a_preempted_elastic_job_goes_on_with_the_size_that_it_had(self):
        elastic = self.submit("elastic", "2\n    min: 2\n    max: 4", "go")
        self.wait(lambda: self.running(elastic) == 4, lambda: self.events(elastic))
        text = JOB % ("big", 3, self.home.path("big"), self.home.path("big-go"))
        big = self.server.submit("priority: 5\n" + text)
        self.wait(lambda: self.running(big) == 3, lambda: self.events(elastic) + self.events(big))
        self.assertEqual(self.state(elastic), "pending")
        self.open("big-go", big)
        self.wait(lambda: self.state(elastic) == "running" and self.running(elastic) == 4, lambda: self.events(elastic))
        self.assertEqual(self.used(), 4)
        self.open("go", elastic)


if __name__ == "__main__":
    unittest.main()
