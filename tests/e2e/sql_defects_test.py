"""Defects of MLSQL's DTFAlg, by the letters of the dialect's description (D5), that clusters of statements do not have.

(a) a failed worker that nobody hears of, (b) lists of addresses in any order and (c) workers that must have the first numbers are in sql_test.py; (d) ports that are
free before the program binds them is in ports_test.py; (f) a cluster is started as a whole, and (g) by authenticated tasks, in the tests of rendezvous.
"""
import os
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import harness  # noqa: E402

LOAD = "load csv.`t.csv` as t; train t as DTFAlg.`"
CLUSTER = ("` where pythonScriptPath='script.py' and `fitParam.0.jobName`='worker' and `fitParam.0.taskIndex`='0'"
           " and `fitParam.1.jobName`='worker' and `fitParam.1.taskIndex`='1' and `fitParam.2.jobName`='ps' and `fitParam.2.taskIndex`='0';")
BEGIN = """
import json, os, signal, subprocess, sys, time
import mlsql
isp = mlsql.internal_system_param
role = json.loads(isp["roleSpec"])
def save():
    os.makedirs(isp["tempModelLocalPath"])
    open(os.path.join(isp["tempModelLocalPath"], "m"), "w").close()
def serve():
    while role["jobName"] == "ps":
        signal.pause()
"""


class Defects(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        with open(self.home.path("t.csv"), "w", encoding="utf-8") as f:
            f.write("a,b\n1,2\n3,4\n")

    def script(self, text):
        with open(self.home.path("script.py"), "w", encoding="utf-8") as f:
            f.write(BEGIN + text)

    def test_e_more_clusters_at_once_than_ten(self):
        # Each worker waits until all clusters run, so that they do run at once.
        count = 12
        self.script(f"""
serve()
open("{self.home.path('up')}." + os.environ["SHOAL_JOB_ID"] + "." + str(role["taskIndex"]), "w").close()
import glob
while len(glob.glob("{self.home.path('up')}.*")) < {2 * count}:
    signal.sigtimedwait([], 0.1)
save()
""")
        statements = [self.home.start("sql", "-q", "-e", LOAD + f"m{i}" + CLUSTER) for i in range(count)]
        for i, process in enumerate(statements):
            self.assertEqual(process.wait(240), 0, harness.said(process))
            self.assertEqual(os.listdir(self.home.path(f"m{i}")), ["_model_0"])
        self.assertEqual(self.home.leftovers(), [])

    def test_h_the_whole_tree_of_a_program_ends(self):
        # Children in sessions of their own, of a worker and of the server.
        self.script("""
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
serve()
signal.sigtimedwait([], 1)
if role["taskIndex"] == 1:
    sys.exit("no luck")
signal.pause()
""")
        begin = time.monotonic()
        code, out, err = self.home.run("sql", "-e", LOAD + "m" + CLUSTER, seconds=120)
        self.assertEqual(code, 1, out + err)
        self.assertIn("worker 1", err)
        self.assertIn("no luck", err)
        self.assertLess(time.monotonic() - begin, 30 * harness.PATIENCE)
        self.assertEqual(self.home.leftovers(), [])

    def test_i_a_model_that_cannot_be_kept_fails_the_statement(self):
        # Something takes the model's place while it is trained.
        self.script("""
serve()
save()
if role["taskIndex"] == 0:
    open(mlsql.fit_param["modelPath"], "w").close()
""")
        code, out, err = self.home.run("sql", "-e", LOAD + "m" + CLUSTER + " save t as csv.`never`;", seconds=120)
        self.assertNotEqual(code, 0, out)
        self.assertIn(self.home.path("m"), err)
        self.assertFalse(os.path.exists(self.home.path("never")))
        self.assertTrue(os.path.isfile(self.home.path("m")))
        self.assertEqual([name for name in os.listdir(self.home.path()) if name.startswith(".m.")], [])


if __name__ == "__main__":
    unittest.main()
