"""Jobs that wait for others, matrices and sweeps on a real server (docs/triggers.md)."""
import json
import os
import signal
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from leader_test import LeaderCase  # noqa: E402  pylint: disable=wrong-import-position
from server_harness import Server, job_text, poll_until  # noqa: E402  pylint: disable=wrong-import-position

GRAPH = """name: prepare
command: [sh, -c, "touch prepared; echo ok"]
---
name: train
command: [sh, -c, "test -e prepared && touch trained"]
after: [prepare]
---
name: on-failure
command: [sh, -c, "echo never"]
after: {job: train, when: failed}
---
name: report
command: [sh, -c, "test -e trained"]
after: [{job: train, when: ended}, prepare]
"""

MATRIX = """name: grid
command: [sh, -c, 'echo {{matrix.lr}} {{matrix.dim}} > member-{{matrix.index}}; test {{matrix.dim}} != 7']
matrix: {lr: [0.1, 0.01], dim: [100, 300], exclude: [{lr: 0.01, dim: 300}], limit: 2}
"""

# A stranger's program. Its loss depends on lr alone; members far from 0.1 are bad from the beginning.
PROGRAM = """import math, sys, time
lr = float(sys.argv[1])
for step in range(1, 41):
    loss = abs(math.log10(lr) + 1) + 1 / step
    print('shoal.metric {"step": %d, "loss": %f}' % (step, loss), flush=True)
    time.sleep(0.15)
"""

SWEEP = """name: tune
command: [python3, train.py, "{{matrix.lr}}"]
sweep:
  objective: loss
  trials: 9
  seed: 3
  limit: 9
  parameters: {lr: {log_uniform: [0.0001, 1]}}
  stop: {first: 4, reduction: 3, by: step}
"""


class TriggersTest(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.__exit__)
        self.server.start()
        self.place = self.server.home.path("work")
        os.makedirs(self.place)

    def submit(self, text, *arguments, code=0):
        path = os.path.join(self.place, "file.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        got, out, err = self.server.shoal("submit", path, *arguments)
        self.assertEqual(got, code, err)
        return out.split() if code == 0 else err

    def end_of(self, job):
        return self.server.wait_for_end(job)

    def group(self, group, states=("succeeded", "failed", "cancelled")):
        def look():
            found = self.server.get(f"/teams/default/groups/{group}").json
            return found if found["state"] in states else None
        return poll_until(look, 60)

    def test_documents_wait_for_one_another(self):
        prepare, train, on_failure, report = self.submit(GRAPH)
        self.assertEqual(self.end_of(report)["state"], "succeeded")
        self.assertEqual(self.end_of(train)["state"], "succeeded")
        self.assertEqual(self.end_of(prepare)["state"], "succeeded")
        never = self.end_of(on_failure)
        self.assertEqual((never["state"], never["reason"]),
                         ("cancelled", f"it was to start after {train} failed, which has succeeded"))

    def test_files_that_cannot_run_are_refused_as_a_whole(self):
        err = self.submit(GRAPH.replace("name: prepare\n", "name: prepare\nafter: report\n"), code=2)
        self.assertIn("file.yaml:2:8: after: got a cycle: prepare waits for report, which waits for ", err)
        err = self.submit(GRAPH.replace("after: [prepare]", "after: [prepaer]"), code=2)
        self.assertIn("after: got prepaer, expected the ID or the name of a job of the team default", err)
        err = self.submit(GRAPH.replace("name: report", "name: train"), code=2)
        self.assertIn("file.yaml:12:7: name: got train a second time", err)
        err = self.submit(MATRIX + "outputs: {model: out}\n", code=2)
        self.assertIn("for several members, expected a path of its own for each", err)
        jobs = self.server.get("/jobs").json["items"]
        self.assertEqual([job for job in jobs if job["state"] != "cancelled"], [])

    def test_waiting_survives_the_server(self):
        first = self.server.submit(job_text(script="echo up; sleep 1000"))
        self.server.wait_for(first, ("running",))
        (waits,) = self.submit(f"name: second\ncommand: ['true']\nafter: {{job: {first}, when: ended}}\n")
        self.assertTrue(poll_until(lambda: "waits for" in self.server.get(f"/jobs/{waits}").json["reason"], 20))
        code, out, _ = self.server.shoal("why", waits)
        self.assertEqual(code, 0)
        self.assertIn(f"{waits} waits: waits for {first}, which is running: it starts when that one ends", out)
        self.server.kill()
        self.server.start()
        self.assertEqual(self.server.get(f"/jobs/{waits}").json["state"], "pending")
        self.assertEqual(self.server.post(f"/jobs/{first}/stop", {"now": True}).status, 202)
        self.assertEqual(self.end_of(waits)["state"], "succeeded")

    def test_matrix(self):
        (group,) = self.submit(MATRIX)
        ended = self.group(group)
        self.assertEqual((ended["state"], ended["size"], ended["counts"]), ("succeeded", 3, {"succeeded": 3}))
        for i, text in enumerate(("0.1 100", "0.1 300", "0.01 100")):
            with open(os.path.join(self.place, f"member-{i}"), encoding="utf-8") as file:
                self.assertEqual(file.read(), text + "\n")
        code, out, _ = self.server.shoal("show", group)
        self.assertEqual(code, 0)
        self.assertRegex(out, rf"(?m)^{group}-1 +succeeded +300 +0\.1$")
        code, out, _ = self.server.shoal("show", group, "--json")
        self.assertEqual([item["values"]["lr"] for item in json.loads(out)["items"]], ["0.1", "0.1", "0.01"])
        code, out, _ = self.server.shoal("show", group + "-0")
        self.assertIn("succeeded", out)
        code, out, _ = self.server.shoal("jobs", "--groups")
        self.assertIn(group, out)
        code, out, _ = self.server.shoal("why", group)
        self.assertEqual((code, out), (0, f"{group} does not wait: it is succeeded\n"))
        code, out, err = self.server.shoal("jobs", "--prune", "0")
        self.assertEqual((code, sorted(out.split("\n"))[1:]),
                         (0, [f"{group} removed"] + [f"{group}-{i} removed" for i in range(3)]), err)
        self.assertEqual(self.server.get("/groups").json, {"items": []})

    def test_without_a_server(self):
        for text, field in ((MATRIX, "matrix: several jobs are made"), (SWEEP, "sweep: several jobs are made"),
                            ("command: ['true']\nafter: x\n", "after: jobs wait for others")):
            path = os.path.join(self.place, "file.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            code, _, err = self.server.home.run("run", path)
            self.assertEqual(code, 2)
            self.assertRegex(err, r"file.yaml:\d+:\d+: " + field + " .*on|by a server only; submit the file to a server with `shoal submit`")

    def test_users_that_are_disabled_submit_nothing_later(self):
        token = self.server.make_user("ann", "red")
        text = "name: nightly\ncommand: ['true']\nschedule: {cron: '0 0 1 1 *'}\n"
        reply = self.server.request("PUT", "/teams/red/schedules/nightly", {"file": text}, token)
        self.assertEqual(reply.status, 201, reply)
        self.assertEqual(self.server.request("PATCH", "/users/ann", {"disabled": True}).status, 200)
        reply = self.server.post("/teams/red/schedules/nightly/run", {})
        self.assertEqual((reply.status, reply.detail), (403, "the user ann, who submitted it, is disabled"))

    def test_files_of_groups_and_schedules(self):
        os.makedirs(os.path.join(self.place, "code"))
        with open(os.path.join(self.place, "code", "main.sh"), "w", encoding="utf-8") as file:
            file.write("echo member $1 > $SHOAL_OUTPUT/said\n")
        text = "name: shipped\nfiles: code\ncommand: [sh, main.sh, '{{matrix.n}}']\nmatrix: {n: [1, 2, 3], limit: 1}\n"
        (group,) = self.submit(text)
        self.assertEqual(self.group(group)["counts"], {"succeeded": 3})
        self.assertEqual(os.listdir(os.path.join(self.server.state, "groups")), [])
        self.schedule(text + "schedule: {cron: '0 0 1 1 *'}\n")
        os.remove(os.path.join(self.place, "code", "main.sh"))  # the server has its copy
        code, out, err = self.server.shoal("schedule", "--run", "shipped", "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual(self.group(json.loads(out)["run"])["counts"], {"succeeded": 3})
        self.assertEqual(len(os.listdir(os.path.join(self.server.state, "schedules"))), 1)
        self.assertEqual(self.server.shoal("schedule", "--remove", "shipped")[0], 0)
        self.assertEqual(os.listdir(os.path.join(self.server.state, "schedules")), [])

    def test_patterns_of_data(self):
        os.makedirs(os.path.join(self.place, "news"))
        for name in "ab":
            with open(os.path.join(self.place, "news", name + ".txt"), "w", encoding="utf-8") as file:
                file.write("the king and the queen saw the sea\n" * 200)
        (group,) = self.submit("name: v\nframework: shoal\nlearn: {algorithm: word2vec, dim: '{{matrix.dim}}', epochs: 1, min-count: 1}\n"
                               "data: {train: news/*.txt}\noutputs: {model: 'v-{{matrix.index}}'}\nmatrix: {dim: [8, 16]}\n")
        self.assertEqual(self.group(group)["state"], "succeeded")
        data = self.server.get(f"/jobs/{group}-0").json["job"]["data"][0]["sources"]
        self.assertEqual([os.path.basename(one) for one in data], ["a.txt", "b.txt"])

    def test_members_that_fail(self):
        (group,) = self.submit(MATRIX.replace("[100, 300]", "[100, 7]").replace("dim: 300}", "dim: 7}"))
        ended = self.group(group)
        self.assertEqual((ended["state"], ended["reason"]), ("failed", "1 of 3 members failed"))

    def test_limit_stop_and_restart_of_the_server(self):
        text = "name: many\ncommand: [sh, -c, 'sleep 1000']\nmatrix: {n: [1, 2, 3, 4, 5, 6], limit: 2}\n"
        (group,) = self.submit(text)

        def states(wanted):
            found = self.server.get(f"/teams/default/groups/{group}").json
            return [item["state"] for item in found["items"]] == wanted

        self.assertTrue(poll_until(lambda: states(["running"] * 2 + ["waiting"] * 4), 30))
        self.assertEqual(self.server.post(f"/jobs/{group}-1/stop", {"now": True}).status, 202)
        self.assertTrue(poll_until(lambda: states(["running", "cancelled", "running"] + ["waiting"] * 3), 30))
        self.server.kill()
        self.server.start()
        self.assertEqual(self.server.post(f"/jobs/{group}-0/stop", {"now": True}).status, 202)
        self.assertTrue(poll_until(lambda: states(["cancelled", "cancelled", "running", "running", "waiting", "waiting"]), 30))
        (after,) = self.submit(f"name: last\ncommand: ['true']\nafter: {{job: {group}, when: ended}}\n")
        code, out, err = self.server.shoal("stop", group, "--now")
        self.assertEqual((code, out), (0, f"{group} is being stopped\n"), err)
        ended = self.group(group)
        self.assertEqual((ended["state"], ended["reason"]), ("cancelled", "stopped by admin"))
        self.assertEqual(ended["counts"], {"cancelled": 4, "waiting": 2})
        self.assertEqual(self.end_of(after)["state"], "succeeded")

    def test_sweep(self):
        with open(os.path.join(self.place, "train.py"), "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        (group,) = self.submit(SWEEP)
        ended = self.group(group)
        self.assertEqual(ended["state"], "succeeded", ended)
        items = ended["items"]
        self.assertGreaterEqual(ended["counts"].get("stopped early", 0), 3, ended)
        self.assertIn(f"best: {items[0]['id']} with loss", ended["reason"])
        self.assertEqual(items[0]["state"], "succeeded")
        objectives = [item["objective"] for item in items]
        self.assertEqual(objectives, sorted(objectives))
        for item in items:
            if item["state"] == "stopped early":
                record = self.server.get(f"/jobs/{item['id']}").json
                self.assertRegex(record["reason"], r"stopped by its sweep: loss .* is not among the best 1/3")

    def schedule(self, text, *arguments, code=0):
        path = os.path.join(self.place, "nightly.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        got, out, err = self.server.shoal("schedule", path, *arguments)
        self.assertEqual(got, code, err)
        return out if code == 0 else err

    def listed(self):
        code, out, err = self.server.shoal("schedule", "--list", "--json")
        self.assertEqual(code, 0, err)
        return [json.loads(line) for line in out.splitlines()]

    def test_schedule(self):
        text = "name: nightly\ncommand: [sh, -c, 'echo ran >> runs']\nschedule: {cron: '0 * * * *', time_zone: Europe/Berlin}\n"
        self.assertRegex(self.schedule(text), r"^nightly is scheduled: 0 \* \* \* \*, Europe/Berlin, next at 20..-..-..T..:00:00")
        self.assertIn("nightly is rescheduled", self.schedule(text, "--set", "schedule.concurrency=replace"))
        code, out, err = self.server.shoal("schedule", "--run", "nightly", "--json")
        self.assertEqual(code, 0, err)
        run = json.loads(out)["run"]
        self.assertEqual(self.end_of(run)["state"], "succeeded")
        # The server is down when a time passes, and the next one has the run once.
        self.server.kill()
        shim = self.server.home.path("clock.so")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clock_shim.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source], check=True)
        with unittest.mock.patch.dict(os.environ, {"LD_PRELOAD": shim, "CLOCK_OFF_BY": "7200"}):
            self.server.start()
        found = poll_until(lambda: [one for one in self.listed() if one["successes"] == 2], 60)
        self.assertTrue(found, self.listed())
        with open(os.path.join(self.place, "runs"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "ran\n" * 2)
        code, out, err = self.server.shoal("schedule", "--remove", "nightly")
        self.assertEqual((code, out), (0, "nightly is no longer scheduled\n"), err)
        self.assertEqual(self.listed(), [])

    def test_schedule_of_a_matrix(self):
        text = MATRIX + "schedule: {cron: '0 0 1 1 *'}\n"
        self.schedule(text)
        code, out, err = self.server.shoal("schedule", "--run", "grid", "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual(self.group(json.loads(out)["run"])["counts"], {"succeeded": 3})
        self.assertTrue(poll_until(lambda: self.listed()[0]["successes"] == 1, 30), self.listed())

    def test_schedule_of_a_cron_job(self):
        text = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\nspec:\n  schedule: 30 2 * * *\n" \
               "  timeZone: Europe/Berlin\n  concurrencyPolicy: Replace\n" \
               "  jobTemplate: {spec: {template: {spec: {containers: [{name: c, command: ['true']}]}}}}\n"
        self.assertIn("nightly is scheduled: 30 2 * * *, Europe/Berlin, next at 20", self.schedule(text))
        self.assertEqual(self.server.get("/schedules").json["items"][0]["concurrency"], "replace")

    def test_schedules_that_are_refused(self):
        err = self.schedule("name: nightly\ncommand: ['true']\nschedule: {cron: '61 * * * *'}\n", code=2)
        self.assertIn("nightly.yaml:3:18: schedule.cron: got '61' as the minute", err)
        err = self.schedule("name: nightly\ncommand: ['true']\n", code=2)
        self.assertIn("has no schedule", err)
        code, _, err = self.server.shoal("schedule", "--remove", "none")
        self.assertEqual(code, 4)
        self.assertIn("the team default has no scheduled job none", err)


class TakeoverTest(LeaderCase):
    """Two servers of one database: what waits, is made and is scheduled goes on with the second, and nothing is made twice."""

    def test_a_frozen_leader(self):
        self.start()
        go, runs = self.home.path("go"), self.home.path("runs")
        script = f"echo {{{{matrix.n}}}} >> {runs}; until [ -e {go} ]; do sleep 0.05; done"  # poll
        text = f"name: many\ncommand: [sh, -c, '{script}']\nmatrix: {{n: [1, 2, 3, 4, 5], limit: 2}}\n---\n" \
               "name: last\ncommand: ['true']\nafter: many\n"
        reply = self.first.post("/submissions", {"file": text})
        self.assertEqual(reply.status, 201, reply)
        group, last = (item["id"] for item in reply.json["items"])
        nightly = f"name: nightly\ncommand: [sh, -c, 'echo nightly >> {runs}']\nschedule: {{cron: '0 0 1 1 *'}}\n"
        self.assertEqual(self.first.request("PUT", "/teams/default/schedules/nightly", {"file": nightly}).status, 201)

        def lines():
            if not os.path.exists(runs):
                return []
            with open(runs, encoding="utf-8") as file:
                return sorted(file.read().split())

        self.assertTrue(poll_until(lambda: lines() == ["1", "2"], 30), lines())
        self.first.process.send_signal(signal.SIGSTOP)
        self.leads(self.second, 60)
        with open(go, "w", encoding="utf-8"):
            pass
        self.assertEqual(self.second.wait_for_end(last, 120)["state"], "succeeded")
        self.first.process.send_signal(signal.SIGCONT)
        found = self.second.get(f"/teams/default/groups/{group}").json
        self.assertEqual((found["state"], found["counts"]), ("succeeded", {"succeeded": 5}))
        self.assertEqual(lines(), ["1", "2", "3", "4", "5"])
        self.assertEqual([one["name"] for one in self.second.get("/schedules").json["items"]], ["nightly"])
        run = self.second.post("/teams/default/schedules/nightly/run", {}).json["id"]
        self.assertEqual(self.second.wait_for_end(run)["state"], "succeeded")
        self.assertEqual(lines(), ["1", "2", "3", "4", "5", "nightly"])


if __name__ == "__main__":
    unittest.main()
