"""Statements of SQL are stopped at random moments: no process, temporary file or half-written model is left."""
import glob
import os
import random
import signal
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import harness  # noqa: E402
import sql_test  # noqa: E402

SCRIPT = """
import os, signal
import mlsql
signal.sigtimedwait([], 0.2)
os.makedirs(mlsql.internal_system_param["tempModelLocalPath"])
with open(os.path.join(mlsql.internal_system_param["tempModelLocalPath"], "m"), "w") as f:
    f.write("x" * 100000)
"""
LOAD = "load csv.`people.csv` as t; "
STATEMENTS = {
    "train": "train t as FM.`models/train` where label='income' and epochs=3;",
    "versions": "train t as LogisticRegression.`models/versions` where label='income' and epochs=2 and keepVersion='true';",
    "cluster": "train t as DTFAlg.`models/cluster` where pythonScriptPath='script.py' and enableDataLocal='true'"
               " and `fitParam.0.jobName`='worker' and `fitParam.0.taskIndex`='0' and `fitParam.1.jobName`='worker' and `fitParam.1.taskIndex`='1';",
    "instances": "train t as PythonAlg.`models/instances` where pythonScriptPath='script.py' and fitParam.0.a='1' and fitParam.1.a='2';",
    "predict": "predict t as FM.`models/ready` as p; save overwrite p as csv.`saved/predicted`;",
    "save": "save overwrite t as json.`saved/people.json`; save overwrite t as csv.`saved/people`;",
}
QUERIES = {"select": "select count(*), sum(a.range % 7) from range(30000) a, range(1000) b as s; save overwrite s as csv.`saved/sum`;"}


class Cancels(unittest.TestCase):
    statements = 24

    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        sql_test.write_people(self.home.path("people.csv"), 3000, 1)
        with open(self.home.path("script.py"), "w", encoding="utf-8") as f:
            f.write(SCRIPT)
        code, out, err = self.home.run("sql", "-e", LOAD + "train t as FM.`models/ready` where label='income' and epochs=1;", seconds=120)
        self.assertEqual(code, 0, out + err)

    def complete(self, model):
        """Whether a directory is a whole model: one of a trainer, or of programs."""
        return os.path.exists(os.path.join(model, "model.json")) or os.path.exists(os.path.join(model, "meta", "0", "part-00000.jsonl"))

    def check_files(self, said):
        for model in glob.glob(self.home.path("models", "*")):
            versions = glob.glob(os.path.join(model, "_model_*"))
            # A statement that was stopped may leave the empty directory for versions.
            whole = all(self.complete(v) for v in versions) and (versions or self.complete(model) or not os.listdir(model))
            self.assertTrue(whole, (model, os.listdir(model), said))
        self.assertEqual(glob.glob(self.home.path("models", ".*")), [], said)
        self.assertEqual(glob.glob(self.home.path("saved", ".*")), [], said)
        for table in glob.glob(self.home.path("saved", "*")):
            self.assertTrue(os.path.isfile(table) or os.path.exists(os.path.join(table, "_SUCCESS")), (table, said))

    def test_statements_are_stopped_at_random_moments(self):
        rng = random.Random(int(os.environ.get("SHOAL_SEED", "7")))
        kinds = dict(STATEMENTS, **(QUERIES if os.path.exists(sql_test.DUCKDB) else {}))
        codes, longest = {}, {}
        for name, statement in kinds.items():  # to their ends, which says how long they take here and now
            begin = time.monotonic()
            code, out, err = self.home.run("sql", "-e", LOAD + statement, env=sql_test.LIBRARY, seconds=120)
            self.assertEqual(code, 0, out + err)
            longest[name] = time.monotonic() - begin
        for i in range(self.statements):
            name = sorted(kinds)[i % len(kinds)]
            process = self.home.start("sql", "-e", LOAD + kinds[name], env=sql_test.LIBRARY)
            wait = rng.random() * longest[name]
            harness.poll_until(lambda: process.poll() is not None, wait)
            if process.poll() is None:
                process.send_signal(rng.choice([signal.SIGINT, signal.SIGTERM]))
            code = process.wait(60)
            codes[code] = codes.get(code, 0) + 1
            said = (name, wait, code, harness.said(process))
            # Between the start of the process and its handling of signals the system's own ends it.
            self.assertIn(code, (0, 130, 143, -signal.SIGINT, -signal.SIGTERM), said)
            self.assertEqual(self.home.leftovers(), [], said)
            self.check_files(said)
        print(f"{self.statements} statements stopped: exit codes {codes}", file=sys.stderr)
        self.assertGreater(self.statements, codes.get(0, 0))  # some were stopped


if __name__ == "__main__":
    unittest.main()
