"""Jobs on a double of Marathon that another command looks after than the one that began them. SHOAL_BIN names the binary."""
import json
import os
import sys
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
import marathon_test  # noqa: E402

JOB = """\
name: long
framework: generic
on_controller_loss: keep
marathon: {url: "@URL@"}
roles: {worker: {replicas: 2, command: [sleep, "600"]}}
"""


class Records(marathon_test.MarathonTest):
    def setUp(self):
        super().setUp()
        self.env = {"SHOAL_ENGINE": "marathon"}  # where Marathon is stands in the job file alone

    def listed(self):
        code, out, err = self.home.run("jobs", "--json", env=self.env)
        self.assertEqual(code, 0, err)
        return [json.loads(line) for line in out.splitlines()]

    def test_a_job_without_a_controller_ends_when_its_group_was_removed(self):
        process = self.start_job(JOB.replace("@URL@", self.marathon.url))
        group = self.running(process)[0].app.id.rsplit("/", 1)[0]
        process.kill()
        process.wait()
        request = urllib.request.Request(f"{self.marathon.url}/v2/groups{group}?force=true", method="DELETE")
        urllib.request.urlopen(request).close()
        self.wait_for(lambda: not self.marathon.scheduler.apps and not self.marathon.scheduler.deployments)
        shown = self.wait_for(lambda: [one for one in self.listed() if one["state"] != "running"])
        self.assertIn(shown[0]["state"], ("failed", "cancelled"), shown)
        self.nothing_is_left()


if __name__ == "__main__":
    unittest.main()
