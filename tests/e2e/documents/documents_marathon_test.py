"""Documented commands for Marathon and Metronome, as printed: the doubles of tests/marathon answer as the host leader.mesos, on a machine of
the test's own (private_machine.py), with Mesos-DNS as its name server. Skipped where such a machine cannot be made; `dig` where there is none."""
import os
import shutil
import sys
import unittest

import places
import private_machine
import sandbox
from sandbox import harness

sys.path.insert(0, os.path.join(harness.SOURCE, "tests", "marathon"))
import marathon_double  # noqa: E402  pylint: disable=wrong-import-position
import mesos_dns  # noqa: E402  pylint: disable=wrong-import-position
import metronome_double  # noqa: E402  pylint: disable=wrong-import-position

NIGHTLY = sandbox.JOB.replace("name: job\n", "name: nightly\n") + "schedule: {cron: 30 2 * * *}\n"
LIVE = "name: text-vectors\nroles: {worker: {replicas: 1, command: [sleep, \"1000\"]}}\n"


class DocumentsMarathonTest(sandbox.DocumentTest):
    def test_commands_run_as_printed(self):
        box = self.sandbox(files={"nightly.yaml": NIGHTLY})
        marathon = marathon_double.Marathon(box.home.path("sandboxes"), port=8080)
        self.addCleanup(marathon.close)
        metronome = metronome_double.Metronome(box.home.path("runs"), port=9000)
        self.addCleanup(metronome.close)
        names = mesos_dns.MesosDns(marathon.scheduler, port=53)
        self.addCleanup(names.close)
        box.exports.update(SHOAL_MARATHON_URL="http://leader.mesos:8080", SHOAL_METRONOME_URL="http://leader.mesos:9000")
        found = {command.text: command for _, commands in places.commands(harness.SOURCE, box, "marathon") for command in commands}
        self.assertGreater(len(found), 5)
        for command in found.values():
            with self.subTest(where=f"{command.page}:{command.line}", command=command.text):
                if "--remove" in command.text:  # a run that is under way keeps its job
                    runs = [run for job in metronome.jobs.values() for run in job.runs]
                    harness.poll_until(lambda: all(run.completed for run in runs), 60 * harness.PATIENCE)  # pylint: disable=cell-var-from-loop
                    self.assertEqual([run.status for run in runs], ["SUCCESS"])
                self.check_command(box, command.text)
        self.assertEqual((list(marathon.scheduler.apps), list(metronome.jobs)), ([], ["shoal.job"]))

    def check_command(self, box, text):
        if text.startswith("dig") and not shutil.which("dig"):
            self.skipTest("there is no dig")
        if text.startswith("dig"):
            box.home.write("at/live.yaml", LIVE)
            live = box.start("shoal run live.yaml --engine marathon")
            job = harness.poll_until(lambda: box.find("text-vectors", "running") or live.poll(), 60 * harness.PATIENCE, 0.1)
            text = text.replace("text-vectors-7f3a2c", str(job))
        code, said = box.run(text)
        self.assertEqual(code, 0, said)
        if text.startswith("dig"):
            self.assertRegex(said, r"^\d+ \d+ \d+ \S+\.$")
            self.assertEqual(box.run("shoal stop " + job)[0], 0)
            live.wait(60 * harness.PATIENCE)


if __name__ == "__main__":
    private_machine.enter_or_skip()
    unittest.main(verbosity=2)
