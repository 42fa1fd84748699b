"""Several servers on one PostgreSQL, longer: a leader that is frozen again and again, a database that is away, and the Python client
that follows the leader (leader_test.py has the rest)."""
import os
import signal
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.environ.get("SHOAL_SOURCE") or os.path.join(HERE, "..", "..", ".."), "python")]
import shoal  # noqa: E402  pylint: disable=wrong-import-position
from leader_test import LINES, LeaderCase  # noqa: E402  pylint: disable=wrong-import-position
from server_harness import PATIENCE, job_text, poll_until, said  # noqa: E402  pylint: disable=wrong-import-position


class LeaderSlowTest(LeaderCase):
    def test_a_leader_frozen_again_and_again(self):
        self.start()
        leader, other = self.first, self.second
        jobs = []
        for i in range(3):
            jobs.append(self.submit(leader, f"again{i}"))
            leader.process.send_signal(signal.SIGSTOP)
            self.leads(other)
            leader.process.send_signal(signal.SIGCONT)
            poll_until(lambda server=leader: said(server.process).count('"event":"standby"') > 0, 15 * PATIENCE)
            leader, other = other, leader
        for job in jobs:
            self.check(leader, job)
        self.nothing_is_left(leader, other)

    def test_a_database_that_is_away(self):
        self.start()
        job = self.submit(self.first, "away")
        self.first.wait_for(job, ("running",))
        self.database.stop()
        def away():
            return self.first.request("GET", "/readyz", token=None).status == 503 and self.first.get("/jobs").status == 503

        self.assertTrue(poll_until(away, 30 * PATIENCE, 0.2))  # when the lease has ended
        self.database.start()
        leader = poll_until(lambda: next((s for s in (self.first, self.second)
                                          if s.request("GET", "/readyz", token=None).status == 200), None), 30 * PATIENCE, 0.1)
        self.assertIsNotNone(leader, said(self.first.process) + said(self.second.process))
        self.check(leader, job)

    def test_the_python_client_follows_the_leader(self):
        self.start()
        with shoal.Client(f"{self.first.url},{self.second.url}", self.first.admin) as client:
            job = self.submit(self.first, "python")
            lines = iter(client.job(job).logs(task="worker-1"))
            read = [next(lines).text for _ in range(20)]
            self.first.kill()
            quick = client.submit(self.home.write("quick.yaml", job_text()))
            read += [line.text for line in lines]
            self.assertEqual(read, [f"line {i}" for i in range(1, LINES + 1)])
            self.assertEqual(quick.wait(timeout=60 * PATIENCE).state, "succeeded")
        self.check(self.second, job)


if __name__ == "__main__":
    unittest.main()
