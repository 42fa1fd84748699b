"""The double of Marathon itself: what Marathon's documentation says that it does. Deadlines are conditions; times are those of its own history."""
import json
import os
import sys
import tarfile
import tempfile
import unittest
import urllib.error
import urllib.request

import harness

sys.path.insert(0, os.path.join(harness.SOURCE, "tests", "marathon"))
import marathon_double  # noqa: E402


class DoubleTest(unittest.TestCase):
    authorization = ""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="marathon")
        self.addCleanup(self.folder.cleanup)
        self.marathon = marathon_double.Marathon(self.folder.name, authorization=self.authorization)
        self.addCleanup(self.marathon.close)
        self.state = self.marathon.scheduler

    def call(self, method, path, value=None, **headers):
        request = urllib.request.Request(self.marathon.url + path, method=method, headers=headers,
                                         data=json.dumps(value).encode() if value is not None else None)
        try:
            with urllib.request.urlopen(request) as reply:
                return reply.status, json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"null")

    def put(self, query="", **app):
        app = {"id": "/g/a", "cmd": "exec sleep 600", "cpus": 1, "backoffSeconds": 0, **app}
        return self.call("PUT", "/v2/groups/g" + query, {"id": "/g", "apps": [app]})

    def events(self, *states):
        return [one for one in self.state.history if one[1] in states]

    def wait_for(self, condition):
        value = harness.poll_until(condition, 20 * harness.PATIENCE)
        self.assertTrue(value, self.state.history)
        return value

    def tasks(self, state="TASK_RUNNING"):
        return [one for one in self.call("GET", "/v2/tasks")[1]["tasks"] if one["state"] == state]


class Behaviour(DoubleTest):
    def test_what_ends_well_is_started_again_later_each_time(self):
        self.put(cmd="exit 0", backoffSeconds=1, backoffFactor=2.0, maxLaunchDelaySeconds=2)
        self.wait_for(lambda: len(self.events("TASK_STAGING")) == 3)
        ended = [one[0] for one in self.events("TASK_FINISHED")]
        begun = [one[0] for one in self.events("TASK_STAGING")]
        self.assertGreaterEqual(begun[1] - ended[0], 0.95)
        self.assertGreaterEqual(begun[2] - ended[1], 1.95)

    def test_a_delay_can_be_reset(self):
        self.put(cmd="exit 1", backoffSeconds=600, maxLaunchDelaySeconds=600)
        self.wait_for(lambda: self.events("TASK_FAILED"))
        waiting = self.call("GET", "/v2/queue")[1]["queue"][0]
        self.assertEqual((waiting["delay"]["overdue"], waiting["count"]), (False, 1))
        self.assertEqual(self.call("DELETE", "/v2/queue/g/a/delay")[0], 204)
        self.wait_for(lambda: len(self.events("TASK_FAILED")) == 2)

    def test_one_deployment_at_a_time(self):
        self.call("POST", "/test/hold", {"on": True})
        first = self.put()[1]["deploymentId"]
        code, answer = self.put(instances=2)
        self.assertEqual((code, answer["deployments"]), (409, [{"id": first}]))
        self.assertEqual(self.put("?force=true", instances=2)[0], 200)
        self.assertNotIn(first, [one["id"] for one in self.call("GET", "/v2/deployments")[1]])
        self.call("POST", "/test/hold", {"on": False})
        self.wait_for(lambda: len(self.tasks()) == 2 and self.call("GET", "/v2/deployments")[1] == [])

    def test_what_fails_its_health_check_is_killed_and_made_again(self):
        check = {"protocol": "COMMAND", "intervalSeconds": 1, "timeoutSeconds": 1, "maxConsecutiveFailures": 2}
        self.put(healthChecks=[{**check, "gracePeriodSeconds": 0, "command": {"value": "test ! -e ../ill"}}])
        first = self.wait_for(self.tasks)[0]["id"]
        task = self.state.apps["/g/a"].tasks[first]
        self.wait_for(lambda: task.health == [True])
        with open(os.path.join(self.folder.name, "ill"), "w", encoding="ascii"):
            pass
        self.wait_for(lambda: self.events("TASK_KILLED"))
        os.unlink(os.path.join(self.folder.name, "ill"))
        self.assertEqual(task.health, [True, False, False])
        self.wait_for(lambda: len(self.events("TASK_STAGING")) == 2)

    def test_within_its_grace_it_may_be_ill(self):
        self.put(healthChecks=[{"protocol": "COMMAND", "intervalSeconds": 1, "timeoutSeconds": 1, "maxConsecutiveFailures": 1,
                                "gracePeriodSeconds": 300, "command": {"value": "sleep 600"}}])
        task = self.state.apps["/g/a"].tasks[self.wait_for(self.tasks)[0]["id"]]
        self.wait_for(lambda: len(task.health) == 2)
        self.assertEqual((task.health, task.ill, self.events("TASK_KILLED")), ([False, False], False, []))

    def test_instances_alone_are_no_new_version(self):
        self.put()
        first = self.wait_for(self.tasks)[0]["id"]
        self.put("?force=true", instances=3)
        self.wait_for(lambda: len(self.tasks()) == 3)
        self.assertIn(first, [one["id"] for one in self.tasks()])
        self.put("?force=true", instances=3, cpus=2)
        self.wait_for(lambda: len(self.tasks()) == 3 and first not in [one["id"] for one in self.tasks()])

    def test_tasks_are_chosen_when_it_shrinks(self):
        self.put(instances=3)
        tasks = self.wait_for(lambda: len(self.tasks()) == 3 and self.tasks())
        self.call("POST", "/v2/tasks/delete?scale=true&force=true", {"ids": [tasks[1]["id"]]})
        self.wait_for(lambda: {one["id"] for one in self.tasks()} == {tasks[0]["id"], tasks[2]["id"]})
        self.assertEqual(self.call("GET", "/v2/apps/g/a")[1]["app"]["instances"], 2)

    def test_ports_are_random_unless_they_are_required(self):
        out = os.path.join(self.folder.name, "ports")
        self.put(cmd=f"echo $PORT $PORT0 $PORT_ADMIN $PORTS $HOST > {out}; exec sleep 600",
                 portDefinitions=[{"port": 10001}, {"port": 0, "name": "admin"}])
        self.wait_for(lambda: os.path.exists(out) and os.path.getsize(out))
        with open(out, encoding="ascii") as file:
            port, port0, admin, ports, host = file.read().split()
        self.assertEqual((port, f"{port0},{admin}"), (port0, ports))
        self.assertNotEqual(port, "10001")
        self.assertEqual(host, self.tasks()[0]["host"])
        self.put("?force=true", portDefinitions=[{"port": 10001}], requirePorts=True)
        self.wait_for(lambda: [one["ports"] for one in self.tasks()] == [[10001]])

    def test_artifacts_are_in_the_sandbox(self):
        out, tool = os.path.join(self.folder.name, "out"), os.path.join(self.folder.name, "tool")
        with open(tool, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho ran\n")
        with tarfile.open(os.path.join(self.folder.name, "data.tgz"), "w:gz") as archive:
            archive.add(tool, "inner")
        self.put(cmd=f"(./tool; cat inner) > {out}.new; mv {out}.new {out}; exec sleep 600",
                 fetch=[{"uri": "file://" + tool, "executable": True}, {"uri": f"file://{self.folder.name}/data.tgz"}])
        self.wait_for(lambda: os.path.exists(out))
        with open(out, encoding="ascii") as file:
            self.assertEqual(file.read(), "ran\n#!/bin/sh\necho ran\n")

    def test_the_stubborn_are_killed_after_the_grace(self):
        self.put(cmd="trap '' TERM; while :; do sleep 1; done", taskKillGracePeriodSeconds=1)
        self.wait_for(self.tasks)
        code, answer = self.call("DELETE", "/v2/groups/g")
        self.assertEqual(code, 200)
        self.assertEqual(self.call("GET", "/v2/apps")[1]["apps"], [])  # its tasks still die
        self.assertIn(answer["deploymentId"], [one["id"] for one in self.call("GET", "/v2/deployments")[1]])
        self.wait_for(lambda: self.events("TASK_KILLED"))
        self.wait_for(lambda: self.call("GET", "/v2/deployments")[1] == [])
        self.assertEqual(self.call("DELETE", "/v2/groups/g")[0], 404)

    def test_unreachable_tasks_are_replaced_and_expunged(self):
        self.put(unreachableStrategy={"inactiveAfterSeconds": 0, "expungeAfterSeconds": 0})
        first = self.wait_for(self.tasks)[0]
        self.call("POST", "/test/reach", {"host": first["host"], "reachable": False})
        second = self.wait_for(self.tasks)[0]
        self.assertNotEqual(first["host"], second["host"])
        self.wait_for(lambda: self.events("expunged"))

    def test_a_disabled_strategy_replaces_nothing(self):
        self.put(unreachableStrategy="disabled")
        first = self.wait_for(self.tasks)[0]
        self.call("POST", "/test/reach", {"host": first["host"], "reachable": False})
        self.wait_for(lambda: self.tasks("TASK_UNREACHABLE"))
        self.call("POST", "/test/reach", {"host": first["host"], "reachable": True})
        self.assertEqual([one["id"] for one in self.wait_for(self.tasks)], [first["id"]])

    def test_constraints_and_what_offers_lack(self):
        self.put(instances=4, constraints=[["hostname", "UNIQUE"]])
        self.wait_for(lambda: len({one["host"] for one in self.tasks()}) == 3)
        waiting = self.call("GET", "/v2/queue")[1]["queue"][0]
        steps = waiting["processedOffersSummary"]["rejectSummaryLastOffers"]
        self.assertEqual((waiting["count"], steps), (1, [{"reason": "UnfulfilledConstraint", "declined": 3, "processed": 3}]))

    def test_what_is_wrong_is_refused(self):
        for fields, path in (({"instances": -1}, "/apps(0)/instances"), ({"instanecs": 1}, "/apps(0)/instanecs"),
                             ({"id": "/Other"}, "/apps(0)/id"), ({"args": ["a"]}, "/apps(0)"),
                             ({"constraints": [["hostname", "NEAR"]]}, "/apps(0)/constraints"),
                             ({"env": {"A": {"secret": "b"}}}, "/apps(0)/env"),
                             ({"unreachableStrategy": {"inactiveAfterSeconds": 1}}, "/apps(0)/unreachableStrategy")):
            code, answer = self.put(**fields)
            self.assertEqual(code, 422, fields)
            self.assertIn(path, [one["path"] for one in answer["details"]])
        self.assertEqual(self.call("GET", "/v2/apps")[1]["apps"], [])

    def test_events(self):
        request = urllib.request.Request(self.marathon.url + "/v2/events?event_type=status_update_event",
                                         headers={"Accept": "text/event-stream"})
        with urllib.request.urlopen(request) as stream:
            self.put(cmd="exit 3", backoffSeconds=600)
            states = []
            while "TASK_FAILED" not in states:
                line = stream.readline().decode()
                if line.startswith("data:"):
                    states.append(json.loads(line[5:]).get("taskStatus"))
        self.assertEqual(states, [None, "TASK_STAGING", "TASK_RUNNING", "TASK_FAILED"])
        self.assertEqual(self.call("GET", "/v2/events")[0], 405)


class Basic(DoubleTest):
    authorization = "Basic dXNlcjpwYXNz"

    def test_credentials(self):
        self.assertEqual(self.call("GET", "/v2/apps")[0], 401)
        self.assertEqual(self.call("GET", "/v2/apps", Authorization="Basic x")[0], 401)
        self.assertEqual(self.call("GET", "/v2/apps", Authorization=self.authorization)[0], 200)


if __name__ == "__main__":
    unittest.main()
