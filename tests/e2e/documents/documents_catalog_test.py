"""Documented commands of the catalogue, as printed: a server with an S3 server behind it, on a machine of the test's own
(private_machine.py). Before each command there is what it needs: the database, the table, a grant whose ID is filled in, a job whose
lineage is asked. A command that reads from a gate is what a job's task runs.

SHOAL_BIN names the binary, SHOAL_SOURCE the checkout. Skipped where such a machine cannot be made or the S3 server is missing;
script/test with a network installs it."""
import json
import os
import re
import sys
import unittest

import places
import private_machine
import sandbox
from sandbox import harness
from server_site import PLAIN, Site

sys.path.insert(0, os.path.join(sandbox.HERE, "..", "stores"))
import s3_store  # noqa: E402  pylint: disable=wrong-import-position

CLICKS = "label,email,age,city\n" + "".join(
    f"{int(i % 90 > 40)},user{i}@example.org,{i % 90},{('Oslo', 'Rome', 'Bonn')[i % 3]}\n" for i in range(600))
# Where the table's source is, besides the bucket.
FOLDER = "/data/ads"
DATABASE = f"shoal catalog create database ads --team ads --location s3://bucket/ads/ --location {FOLDER}/"
TABLE = "shoal catalog create table ads.clicks --source 's3://bucket/ads/part-*.csv' --credentials ads-s3"
TRAINER = """\
name: clicks
framework: shoal
learn: {algorithm: logistic, label: label}
data: {train: {table: ads.clicks, columns: [label, age, city]}}
outputs: {model: 's3://bucket/models/clicks'}
env: %s
roles: {worker: 1}
"""
READER = """\
name: reader
data: {train: {table: ads.clicks, columns: [label, age]}}
roles: {worker: {command: [bash, -c, %s]}}
"""


class Catalog:
    """The server, and what is in its catalogue."""

    def __init__(self, test, box, store):
        self.test, self.box, self.store = test, box, store
        self.site = Site(test, box)
        test.addCleanup(self.site.close)
        self.must("", self.site.serve(PLAIN))
        for team in ("ads", "legal"):
            test.assertEqual(self.site.ask("POST", "/teams", {"name": team}), 201)
        code, said = self.site.sign_in()
        test.assertEqual(code, 0, said)
        secret = box.home.write("ads-s3", "".join(f"{name}={value}\n" for name, value in store.env.items()))
        self.run(f"shoal secret set ads-s3 --file {secret} --team ads")
        self.clicks = ""

    def must(self, line, fault):
        self.test.assertEqual(fault, "", line)

    def run(self, line, code=0):
        ended, said = self.box.run(line)
        self.test.assertEqual(ended, code, f"{line}\n{said}")
        return said

    def has(self, name):
        return self.box.run(f"shoal catalog show {name}")[0] == 0

    def has_database(self):
        return any(line.split()[:1] == ["ads"] for line in self.run("shoal catalog ls").splitlines())

    def clear(self, what):
        """Removes the table, and the database where that is what a command makes."""
        if self.has("ads.clicks"):
            self.run("shoal catalog drop ads.clicks")
        if what == "database" and self.has_database():
            self.run("shoal catalog drop ads")

    def fill(self):
        """Makes the database and the table where they are missing."""
        if not self.has_database():
            self.run(DATABASE)
        if not self.has("ads.clicks"):
            self.run(TABLE)

    def grant(self):
        self.run("shoal catalog grant ads.clicks --to team:research --columns age")
        return json.loads(self.run("shoal catalog show ads.clicks --json"))["grants"][-1]["id"]

    def submit(self, text):
        """The ID of a job of the administrator, who may read the table, after it has succeeded."""
        self.run("shoal catalog grant ads.clicks --to everyone --columns label,age,city")
        file = self.box.home.write("at/table-job.yaml", text)
        job = re.match(r"\S+-[0-9a-f]{6}", self.run(f"shoal submit {file} --team ads"))[0]
        record = {}

        def ended():
            record.update(json.loads(self.run(f"shoal show {job} --json")))
            return record["state"] in ("succeeded", "failed", "cancelled")
        self.test.assertTrue(harness.poll_until(ended, 120 * harness.PATIENCE), record)
        self.test.assertEqual(record["state"], "succeeded", self.box.run(f"shoal logs {job}"))
        return job

    def run_command(self, text):
        """Runs a documented command, with what it needs before it, and checks what it says and has done."""
        words = text.split()
        if text.startswith("shoal catalog create"):
            self.clear(words[3])
            if words[3] == "table":
                self.clear("database")
                self.run(DATABASE)
        else:
            self.fill()
        if text.startswith("shoal data copy 'gate:"):
            job = self.submit(READER % json.dumps(text + " && cat part/*"))
            self.test.assertIn("label,age", self.run(f"shoal logs {job}"))
            return
        if words[1] == "lineage" and not self.clicks:
            self.clicks = self.submit(TRAINER % json.dumps(self.store.env))
        line = re.sub(r"\bclicks-[0-9a-f]{6}\b", self.clicks, text)
        if words[2] == "revoke":
            line = line.replace(words[4], self.grant())
        said = self.run(line)
        if words[1] == "lineage":
            self.test.assertEqual(self.clicks in said, "email" not in text, said)
        if text.startswith("shoal catalog create table"):
            self.test.assertIn("city", self.run("shoal catalog show ads.clicks"))


class DocumentsCatalogTest(sandbox.DocumentTest):
    def test_commands_run_as_printed(self):
        box = self.sandbox(files={"clicks.csv": CLICKS})
        box.certify("ml.example")
        store = s3_store.S3Store()
        self.addCleanup(store.close)
        box.exports.update(store.env)
        for part in (0, 1):
            code, said = box.run(f"shoal data copy clicks.csv s3://bucket/ads/part-{part}.csv")
            self.assertEqual(code, 0, said)
        catalog = Catalog(self, box, store)
        os.makedirs(FOLDER, exist_ok=True)
        with open(os.path.join(FOLDER, "clicks.csv"), "w", encoding="ascii") as file:
            file.write(CLICKS)
        found = {command.text: command for _, commands in places.commands(harness.SOURCE, box, "catalog") for command in commands}
        self.assertGreater(len(found), 15)
        for command in found.values():
            with self.subTest(where=f"{command.page}:{command.line}", command=command.text):
                catalog.run_command(command.text)


if __name__ == "__main__":
    if not s3_store.installed():
        print("skipped: needs moto; script/test with a network installs it")
        sys.exit(77)
    private_machine.enter_or_skip()
    unittest.main(verbosity=2)
