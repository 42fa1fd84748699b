"""Commands in another PID namespace, and owners that are frozen, see the same state home. SHOAL_BIN names the binary."""
import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

JOB = """\
name: sleeper
command: [sh, -c, "echo up; exec sleep 60"]
roles: {worker: {replicas: 1, resources: {memory: @MEMORY@}}}
limits: {stop_grace: 1s}
"""
# With /proc of the new namespace, and with the one that was there.
KINDS = (["unshare", "-p", "-f", "--mount-proc"], ["unshare", "-p", "-f"])


def can_unshare():
    return subprocess.run([*KINDS[0], "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0


class NamespaceTest(harness.JobsTest):
    def begin(self, name="sleeper", memory="64Mi"):
        text = JOB.replace("sleeper", name).replace("@MEMORY@", memory)
        return self.home.start("run", self.home.write(f"{name}.yaml", text))

    def job(self, name="sleeper"):
        code, out, err = self.home.run("jobs", "--all", "--json")
        self.assertEqual(code, 0, err)
        found = [json.loads(line) for line in out.splitlines()]
        return next((job for job in found if job["name"] == name), {})

    def until_state(self, state, name="sleeper"):
        self.assertTrue(harness.poll_until(lambda: self.job(name).get("state") == state, 20 * harness.PATIENCE),
                        self.job(name))

    def outside(self, kind, *arguments):
        done = subprocess.run([*kind, self.home.binary, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                              env=self.home.environ(), cwd=self.home.root, check=False, timeout=60 * harness.PATIENCE)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def scratch(self):
        return [path for directory in self.home.job_dirs() for path in os.listdir(os.path.join(directory, "scratch"))]

    def test_a_command_elsewhere_leaves_a_running_job_alone(self):
        run = self.begin()
        self.until_state("running")
        before = self.scratch()
        self.assertTrue(before)
        for kind in KINDS:
            code, out, err = self.outside(kind, "jobs", "--json")
            self.assertEqual(code, 0, err)
            seen = json.loads(out)
            self.assertEqual((seen["state"], seen.get("unattended")), ("running", None), kind)
            self.assertEqual(self.scratch(), before, kind)
        code, out, err = self.outside(KINDS[0], "stop", "sleeper")
        self.assertEqual(code, 0, err)
        self.assertIn("cancelled", out)
        self.assertEqual(run.wait(20 * harness.PATIENCE), 130)
        self.assertEqual(self.home.leftovers(), [])

    def test_a_command_on_another_host_leaves_a_running_job_alone(self):
        """Two hosts share the home: the other one has another name, boot and processes. The job's controller is killed, too."""
        boot = self.home.write("boot", "11111111-2222-3333-4444-555555555555\n")
        host = ["unshare", "-m", "-u", "-p", "-f", "--mount-proc", "sh", "-c", "hostname other && mount --bind "
                f"{boot} /proc/sys/kernel/random/boot_id && exec \"$@\"", "sh"]
        if subprocess.run([*host, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("needs namespaces")
        run = self.home.start("run", self.home.write("keep.yaml", JOB.replace("@MEMORY@", "64Mi") + "on_controller_loss: keep\n"))
        self.until_state("running")
        before = self.scratch()
        for unattended in (None, True):
            code, out, err = self.outside(host, "jobs", "--json")
            self.assertEqual(code, 0, err)
            seen = json.loads(out)
            self.assertEqual((seen["state"], seen.get("unattended")), ("running", unattended), seen)
            self.assertEqual(self.scratch(), before)
            run.kill()
            run.wait()
        self.assertEqual(self.job()["state"], "running")
        self.assertEqual(self.home.run("stop", "sleeper", "--now")[0], 0)
        self.assertEqual(self.home.leftovers(), [])

    def test_a_foreign_proc_makes_no_server_a_thief(self):
        job = self.home.write("serves.yaml", "name: serves\nroles: {worker: {replicas: 1, ports: [p]}}\ncommand: [python3, -c, "
                              "'import os, select, socket; s = socket.create_server((\"127.0.0.1\", int(os.environ[\"SHOAL_PORT\"]))); "
                              "select.select([s], [], [], 2)']\n")
        code, out, err = self.outside(KINDS[1], "run", job)
        self.assertEqual(code, 0, out + err)
        self.assertNotIn("is taken", out + err)

    def test_without_a_loopback_interface_a_job_is_refused_at_once(self):
        job = self.home.write("job.yaml", JOB.replace("@MEMORY@", "64Mi"))
        code, out, err = self.outside(["unshare", "-n"], "run", job)
        self.assertEqual(code, 5, out + err)
        self.assertIn("its loopback interface is down", err)
        self.assertIn("`ip link set lo up`", err)
        self.assertEqual(self.home.leftovers(), [])

    def test_a_killed_controllers_job_is_unattended_from_there(self):
        run = self.begin()
        self.until_state("running")
        before = self.scratch()
        run.kill()
        run.wait()
        code, out, err = self.outside(KINDS[0], "jobs", "--json")
        self.assertEqual(code, 0, err)
        seen = json.loads(out)
        self.assertEqual((seen["state"], seen.get("unattended")), ("running", True))
        self.assertEqual(self.scratch(), before)
        self.home.run("stop", "sleeper", "--now")
        self.assertEqual(self.home.leftovers(), [])

    def test_stop_ends_the_job_of_a_frozen_command(self):
        run = self.begin()
        self.until_state("running")
        os.kill(run.pid, signal.SIGSTOP)
        code, out, err = self.home.run("stop", "sleeper", seconds=40)
        self.assertEqual(code, 0, err)
        self.assertIn("cancelled", out)
        self.assertEqual(run.wait(20 * harness.PATIENCE), 130)
        self.assertEqual(self.home.leftovers(), [])

    def test_stop_from_elsewhere_records_the_end_of_a_frozen_commands_job(self):
        run = self.begin()
        self.until_state("running")
        os.kill(run.pid, signal.SIGSTOP)
        code, out, err = self.outside(KINDS[0], "stop", "sleeper")
        self.assertEqual(code, 0, err)
        self.assertIn("cancelled", out)
        self.assertEqual(self.job()["state"], "cancelled")
        os.kill(run.pid, signal.SIGCONT)
        run.wait(20 * harness.PATIENCE)
        self.assertEqual(self.job()["state"], "cancelled")
        self.assertEqual(self.home.leftovers(), [])

    def test_a_frozen_command_that_waits_is_passed_and_can_be_stopped(self):
        with open("/proc/meminfo", encoding="ascii") as f:
            total = int(f.readline().split()[1]) // 1024
        most = f"{total * 6 // 10}Mi"
        first = self.begin("first", most)
        self.until_state("running", "first")
        second = self.begin("second", most)
        self.until_state("pending", "second")
        os.kill(second.pid, signal.SIGSTOP)
        third = self.begin("third", most)
        self.until_state("pending", "third")
        self.home.run("stop", "first", "--now")
        first.wait(20 * harness.PATIENCE)
        self.assertTrue(harness.poll_until(lambda: self.job("third").get("state") == "running", 40 * harness.PATIENCE),
                        self.job("third"))
        code, out, err = self.home.run("stop", "second")
        self.assertEqual(code, 0, err)
        self.assertIn("cancelled", out)
        self.assertEqual(second.wait(20 * harness.PATIENCE), 130)
        self.home.run("stop", "third", "--now")
        self.assertEqual(third.wait(20 * harness.PATIENCE), 130)
        self.assertEqual(self.home.leftovers(), [])


if __name__ == "__main__":
    if os.geteuid() != 0 or not can_unshare():
        print("skipped: needs root and the right to make PID namespaces")
        sys.exit(77)
    unittest.main()
