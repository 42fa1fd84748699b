"""Names in Latin-1, and records that an earlier shoal left with them. SHOAL_BIN names the binary."""
import json
import os
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

LATIN = b"caf\xe9"
JOB = "name: plain\ncommand: [sh, -c, 'echo done']\n"


class NamesTest(harness.JobsTest):
    def latin(self, *parts):
        return os.path.join(self.home.root.encode(), *parts)

    def usable(self):
        """The state home works: every command that reads records ends well."""
        for words in (["jobs", "--all"], ["jobs", "--json"], ["jobs", "--ids"]):
            code, _, err = self.home.run(*words)
            self.assertEqual(code, 0, err)

    def refused(self, *arguments, cwd=None, place=""):
        code, out, err = self.home.run(*arguments, cwd=cwd)
        self.assertEqual(code, 2, out + err)
        self.assertIn("is not UTF-8", err)
        self.assertIn("caf\\xe9", err)
        self.assertIn(place, err)
        self.usable()
        self.assertEqual(self.home.leftovers(), [])

    def test_a_job_file_with_such_a_name(self):
        path = self.latin(LATIN + b".yaml")
        with open(path, "w", encoding="ascii") as f:
            f.write("command: [sh, -c, 'echo done']\n")
        self.home.run("run", path)
        self.usable()
        self.assertEqual(self.home.leftovers(), [])

    def test_such_a_directory(self):
        place = self.latin(LATIN)
        os.mkdir(place)
        for name, more in (("outputs", "outputs: {model: out}\n"),
                           ("data", "data: {train: {source: text.txt, format: text}}\n")):
            with open(os.path.join(place, b"job.yaml"), "w", encoding="ascii") as f:
                f.write(JOB + more)
            with open(os.path.join(place, b"text.txt"), "w", encoding="ascii") as f:
                f.write("a b c\n")
            self.refused("run", "job.yaml", cwd=place, place=name)
        with open(os.path.join(place, b"job.yaml"), "w", encoding="ascii") as f:
            f.write(JOB)
        code, out, err = self.home.run("run", "job.yaml", cwd=place)
        self.assertEqual(code, 0, out + err)
        self.usable()

    def test_such_an_option(self):
        data = self.home.write("train.csv", "label,a\n0,1\n1,2\n")
        for option in ("--label", "--categorical"):
            code, out, err = self.home.run("train", "logistic", "--data", data, "--output", self.home.path("model"),
                                           option, LATIN)
            self.assertEqual(code, 2, out + err)
            self.usable()

    def test_an_old_record_with_such_a_name_hides_no_other(self):
        for name in ("one", "two"):
            code, _, err = self.go(JOB.replace("plain", name))
            self.assertEqual(code, 0, err)
        with sqlite3.connect(os.path.join(self.home.home, "shoal.db")) as db:
            db.execute("UPDATE jobs SET job = CAST(replace(CAST(job AS BLOB), CAST('done' AS BLOB), X'e9') AS TEXT)"
                       " WHERE name = 'one'")
        db.close()
        code, out, err = self.home.run("jobs", "--json")
        self.assertEqual(code, 0, err)
        jobs = {job["name"]: job for job in map(json.loads, out.splitlines())}
        self.assertEqual(sorted(jobs), ["one", "two"])
        self.assertIn("cannot be read", jobs["one"]["damage"])
        for words in (["show", "one"], ["logs", "one"], ["stop", "one"]):
            code, _, err = self.home.run(*words)
            self.assertEqual(code, 0, err)
        self.assertEqual(self.go(JOB)[0], 0)
        code, out, _ = self.home.run("doctor")
        self.assertEqual(code, 1)
        self.assertIn("the column 'job' of shoal.db", out)
        code, out, err = self.home.run("jobs", "--prune", "unreadable")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^one-\w+ removed\n$")
        code, out, _ = self.home.run("jobs", "--ids")
        self.assertEqual(len(out.split()), 2)
        self.assertNotIn("cannot be read", self.home.run("doctor")[1])


if __name__ == "__main__":
    unittest.main()
