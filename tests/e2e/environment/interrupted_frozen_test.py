"""`shoal stop` ends a job whose coordinator is stopped (SIGSTOP), and hurries no controller that has heard of the end."""
import json
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "server"))
import server_harness  # noqa: E402

JOB = """\
name: lasting
command: [sh, -c, "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"]
limits: {stop_grace: 20s}
"""


class InterruptedFrozenTest(harness.JobsTest):
    def freeze_coordinator(self):
        pid = next(p.pid for p in self.home.processes() if p.kind == "coordinator")
        os.kill(pid, signal.SIGSTOP)

    def state(self):
        return json.loads(self.home.run("jobs", "--json")[1].splitlines()[0])["state"]

    def test_stop(self):
        process = self.start_job(JOB, "up")
        self.freeze_coordinator()
        code, out, err = self.home.run("stop", "lasting")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(process.wait(30 * harness.PATIENCE), 130)
        self.assertIn("| saved", harness.said(process))
        self.assertEqual(self.state(), "cancelled")
        self.assertEqual(self.home.leftovers(), [])

    def test_ctrl_c(self):
        process = self.start_job(JOB, "up")
        self.freeze_coordinator()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(30 * harness.PATIENCE), 130)
        self.assertIn("| saved", harness.said(process))
        self.assertEqual(self.home.leftovers(), [])

    def test_stop_and_suspend_at_a_server(self):
        with server_harness.Server(self.home) as server:
            env = {"SHOAL_SERVER": server.url, "SHOAL_TOKEN": server.admin}
            for command, state in (("suspend", "suspended"), ("stop", "cancelled")):
                code, out, err = self.home.run("submit", self.home.write("job.yaml", JOB), "--json", env=env)
                self.assertEqual(code, 0, err)
                job = json.loads(out)["id"]
                self.assertTrue(harness.poll_until(lambda job=job: "up" in self.home.run("logs", job, env=env)[1], 30 * harness.PATIENCE))
                self.freeze_coordinator()
                code, out, err = self.home.run(command, job, env=env)
                self.assertEqual(code, 0, out + err)
                listed = [json.loads(line) for line in self.home.run("jobs", "--json", env=env)[1].splitlines()]
                self.assertEqual([one["state"] for one in listed if one["id"] == job], [state])
            server.stop()
        self.assertEqual(self.home.leftovers(), [])

    def test_stop_now_without_a_controller(self):
        process = self.start_job(JOB, "up")
        self.freeze_coordinator()
        process.kill()
        process.wait()
        code, out, err = self.home.run("stop", "lasting", "--now")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.state(), "cancelled")
        self.assertEqual(self.home.leftovers(), [])

    def test_the_command_is_not_signalled_when_its_job_was_stopped(self):
        process = self.start_job(JOB, "up")
        self.assertEqual(self.home.run("stop", "lasting")[0], 0)
        self.assertEqual(process.wait(30 * harness.PATIENCE), 130)
        said = harness.said(process)
        self.assertNotIn("SIGTERM", said)
        self.assertNotIn("Ctrl-C", said)


if __name__ == "__main__":
    unittest.main()
