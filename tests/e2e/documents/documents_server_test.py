"""Documented commands that need a server, run as printed against a real one: those of instead.py that its WITH_A_SERVER names, in its order.

SHOAL_BIN names the binary, SHOAL_SOURCE the checkout."""
import os
import re
import sys
import unittest

import instead
import sandbox

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from server_harness import Server  # noqa: E402  pylint: disable=wrong-import-position

QUEUES = """\
flavors: {here: {engine: local}}
default_queue: general
queues:
  research: {quota: {here: {memory: 4Gi}}}
  general: {quota: {here: {memory: 4Gi}}}
"""
PAGES = ("docs/triggers.md", "docs/policies.md", "docs/webhooks.md")
FILES = {
    "job.yaml": "name: job\ncommand: [echo, hello]\nroles: {worker: 2}\n",
    "nightly.yaml": 'name: nightly\ncommand: [echo, hello]\nroles: {worker: 1}\nschedule: {cron: "30 2 * * *"}\n',
    "train.yaml": "name: train\ncommand: [echo, hello]\nroles: {worker: 1}\n",
    "policy.json": '{"engines": ["local", "k8s-*"], "log_days": 30}\n',
    "slack.url": "https://hooks.example.org/services/T0/B0/key\n",
}


class DocumentsServerTest(sandbox.DocumentTest):
    def test_commands_run_as_printed(self):
        files = {name: text for page in PAGES for name, text in sandbox.files_of(page).items()}
        box = self.sandbox(files={**files, **FILES})
        server = Server(box.home, ("--queues", box.home.write("queues.yaml", QUEUES)))
        server.start()
        self.addCleanup(server.kill)
        for team in ("research", "vision"):
            self.assertEqual(server.post("/teams", {"name": team}).status, 201)
        code, said = box.run(f"shoal login {server.url} --token-file {server.token_file}")
        self.assertEqual(code, 0, said)
        ids = {}
        for line in instead.WITH_A_SERVER:
            # The ID of a page's example is that of the job that was submitted here.
            text = re.sub(r"\b(grid|prepare)-[0-9a-f]{6}\b", lambda found: ids[found.group(1)], line)
            with self.subTest(line=line):
                code, said = box.run(text)
                self.assertEqual(code, 0, said)
            for name, made in re.findall(r"^((grid|prepare)-[0-9a-f]{6})\b", said, re.M):
                ids.setdefault(made, name)

    def test_each_is_one_that_is_not_run_elsewhere(self):
        self.assertEqual([line for line in instead.WITH_A_SERVER if line not in instead.INSTEAD], [])
        self.assertEqual(len(set(instead.WITH_A_SERVER)), len(instead.WITH_A_SERVER))


if __name__ == "__main__":
    unittest.main(verbosity=2)
