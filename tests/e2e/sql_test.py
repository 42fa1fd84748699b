"""`shoal sql`: load, train, predict, save and show; jobs that are those of `shoal train`; clusters of a user's script; queries."""
import csv
import glob
import json
import os
import pty
import random
import select
import signal
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import harness  # noqa: E402


def write_people(path, count, seed):
    rng = random.Random(seed)
    with open(path, "w", encoding="utf-8") as f:
        f.write("id,age,town,income\n")
        for i in range(count):
            age, town = rng.randrange(18, 80), rng.randrange(3)
            f.write(f"{i},{age},town{town},{'high' if age + 10 * town + rng.gauss(0, 3) > 55 else 'low'}\n")


# DuckDB's library, which queries need: the one that script/bootstrap sql fetched.
CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
DUCKDB = os.environ.get("SHOAL_DUCKDB") or os.path.join(CACHE, "shoal", "duckdb", "libduckdb.so")
LIBRARY = {"SHOAL_DUCKDB": DUCKDB}

# Saves what it was told, and how many rows it got.
SCRIPT = """
import json, os, sys
import mlsql
isp = mlsql.internal_system_param
role = json.loads(isp["roleSpec"])
cluster = json.loads(isp["clusterSpec"])
rows = []
for name in sorted(os.listdir(isp["tempDataLocalPath"])):
    with open(os.path.join(isp["tempDataLocalPath"], name)) as f:
        rows += [json.loads(line) for line in f]
streamed = sum(len(some) for some in mlsql.read_data()(max_records=2))
print("ROLE", role["jobName"], role["taskIndex"], flush=True)
if role["jobName"] == "ps":
    import time
    while True:
        time.sleep(60)  # as server.join() does
if mlsql.fit_param.get("fail") == "true":
    sys.exit("no luck")
os.makedirs(isp["tempModelLocalPath"])
with open(os.path.join(isp["tempModelLocalPath"], "seen.json"), "w") as f:
    json.dump({"role": role, "cluster": cluster, "rows": rows, "streamed": streamed, "fit": mlsql.fit_param,
               "validate": mlsql.validate_data, "tf": json.loads(os.environ["TF_CONFIG"])}, f)
"""


class Sql(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        write_people(self.home.path("people.csv"), 3000, 1)

    def sql(self, statements, *arguments, code=0, env=None):
        got, out, err = self.home.run("sql", "-e", statements, *arguments, seconds=120, env=env or LIBRARY)
        self.assertEqual(got, code, out + err)
        return out, err

    def events(self, statements, *arguments):
        out, _ = self.sql(statements, "--json", *arguments)
        return [json.loads(line) for line in out.splitlines()]

    def test_load_train_predict_save(self):
        with open(self.home.path("all.sql"), "w", encoding="utf-8") as f:
            f.write("""-- the whole way
set model = "income";
load csv.`people.csv` where header="true" as t;
train t as LogisticRegression.`${model}` where label="income" and key="id" and epochs="5";
predict t as LogisticRegression.`${model}` as p;
save overwrite p as csv.`out`; /* a directory */
!show tables; !show jobs; !show models;
""")
        code, out, err = self.home.run("sql", "all.sql", seconds=120,)
        self.assertEqual(code, 0, out + err)
        self.assertIn("saved 3000 rows", err)
        parts = sorted(os.listdir(self.home.path("out")))
        self.assertEqual(parts, ["_SUCCESS", "part-00000.csv"])
        with open(self.home.path("out", "part-00000.csv"), encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual(len(rows), 3000)
        right = sum(row["income"] == row["prediction"] for row in rows)
        self.assertGreater(right, 2500)
        self.assertTrue(all(0 <= float(row["probability"]) <= 1 for row in rows))
        # The job is one of `shoal train`, and its model one of `shoal predict`.
        code, jobs, _ = self.home.run("jobs", "--json", "--all")
        job = json.loads(jobs.splitlines()[0])
        self.assertEqual((job["name"], job["state"]), ("logistic", "succeeded"))
        self.assertIn(job["id"], out)
        code, out, err = self.home.run("predict", self.home.path("income"), "--data", self.home.path("people.csv"))
        self.assertEqual(code, 0, err)

    def test_results_as_json(self):
        events = self.events("load csv.`people.csv` as t;", "--rows", "2")
        self.assertEqual(events[0]["columns"], ["id", "age", "town", "income"])
        self.assertEqual(len(events[0]["rows"]), 2)
        self.assertTrue(events[0]["more"])
        events = self.events("load csv.`people.csv` as t; train t as FM.`m` where label='income' and epochs=1 as r;")
        self.assertEqual([e["event"] for e in events].count("done"), 1)
        result = dict(zip(events[-1]["columns"], events[-1]["rows"][0]))
        self.assertEqual((result["alg"], result["status"], result["algIndex"]), ("FM", "success", 0))
        self.assertEqual(result["modelPath"], self.home.path("m"))
        self.assertEqual(json.loads(result["trainParams"]), {"label": "income", "epochs": "1"})

    def test_versions(self):
        train = "load csv.`people.csv` as t; train t as FM.`m` where label='income' and epochs=1 and keepVersion='true';"
        self.sql(train + train)
        self.assertEqual(sorted(os.listdir(self.home.path("m"))), ["_model_0", "_model_1"])
        self.sql("load csv.`people.csv` as t; predict t as FM.`m` as p; save p as csv.`p.csv`;")

    def test_errors_have_places_and_codes(self):
        _, err = self.sql("load csv.`people.csv` as t;\ntrain t as FM.`m` where epoch='1';", code=2)
        self.assertIn("shoal: -e:2:25: there is no parameter epoch of fm; did you mean 'epochs'?", err)
        self.assertIn("shoal:   2 | train t as FM.`m` where epoch='1';", err)
        _, err = self.sql("load csv.`absent.csv` as t;", code=2)
        self.assertRegex(err, r"-e:1:10: .*absent.csv does not exist")
        _, err = self.sql("load csv.`people.csv` as t; predict t as FM.`absent`;", code=4)
        self.assertIn("-e:1:45: there is no model in", err)
        # The trainer's own check, before a job is made.
        self.sql("load csv.`people.csv` as t; train t as FM.`m` where label='nothing';", code=2)
        code, out, err = self.home.run("sql")
        self.assertEqual(code, 2)
        self.assertIn("expected either a FILE", err)
        code, _, _ = self.home.run("jobs", "--json", "--all")
        self.assertEqual(code, 0)

    def test_ctrl_c_stops_the_job_and_the_script(self):
        process = self.home.start("sql", "-e", "load csv.`people.csv` as t; train t as FM.`m` where label='income' and epochs=1000; "
                                  "save t as csv.`never`;", "--json")
        self.assertTrue(harness.poll_until(lambda: '"progress"' in harness.said(process), 60), harness.said(process))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130, harness.said(process))
        self.assertFalse(os.path.exists(self.home.path("never")))
        self.assertEqual(self.home.leftovers(), [])

    def test_the_shell(self):
        controller, terminal = pty.openpty()
        process = subprocess.Popen([self.home.binary, "sql"], stdin=terminal, stdout=terminal, stderr=terminal,
                                   env={**self.home.environ(), "TERM": "xterm"}, cwd=self.home.path(), start_new_session=True)
        os.close(terminal)
        self.addCleanup(os.close, controller)
        said = bytearray()

        def wait_for(text):
            def there():
                while select.select([controller], [], [], 0.05)[0]:
                    said.extend(os.read(controller, 65536))
                return text in said
            self.assertTrue(harness.poll_until(there, 30), (text, bytes(said)))
            del said[:said.index(text) + len(text)]

        wait_for(b"shoal> ")
        os.write(controller, b"load csv.`peo\t where hea\t='true'\ras t;\r")
        wait_for(b"people.csv` where header=")
        wait_for(b"the first 20 rows")
        wait_for(b"shoal> ")
        os.write(controller, b"nonsense;\r")
        wait_for(b"shell:1:1: got nonsense")
        os.write(controller, b"\\timing\r!desc t\r")
        wait_for(b"income  text")
        wait_for(b"ms)")
        # A statement that is stopped leaves the shell; its history comes back.
        os.write(controller, b"train t as FM.`m` where label='income' and epochs=100000;\r")
        wait_for(b"running")
        process.send_signal(signal.SIGINT)
        wait_for(b"was stopped")
        wait_for(b"shoal> ")
        os.write(controller, b"\x1b[A")
        wait_for(b"epochs=100000;")
        os.write(controller, b"\x03exit\r")
        self.assertEqual(process.wait(30), 0)
        self.assertEqual(self.home.leftovers(), [])

    def test_closed_standard_output_fails(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([self.home.binary, "sql", "-e", "!show formats;"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  env=self.home.environ(), check=False, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("standard output", done.stderr)

    def cluster(self, extra="", *arguments, code=0):
        with open(self.home.path("script.py"), "w", encoding="utf-8") as f:
            f.write(SCRIPT)
        return self.sql("""
load csv.`people.csv` as t;
load jsonStr.`some` as v;
train t as DTFAlg.`dtf` where pythonScriptPath="script.py" and `systemParam.pythonPath`="python3" and validateTable="v"
  and `kafkaParam.bootstrap.servers`="127.0.0.1:9092" and `kafkaParam.topic`="x"
  and `fitParam.0.jobName`="ps" and `fitParam.0.taskIndex`="0"
  and `fitParam.1.jobName`="worker" and `fitParam.1.taskIndex`="1" and `fitParam.1.lr`="0.1"
  and `fitParam.2.jobName`="worker" and `fitParam.2.taskIndex`="0" %s as r;
""" % extra, "--set", 'some={"a":1}', *arguments, code=code)

    def seen(self, version, group):
        with open(self.home.path("dtf", version, "model", str(group), "seen.json"), encoding="utf-8") as f:
            return json.load(f)

    def test_a_cluster_of_a_script(self):
        self.cluster('and enableDataLocal="true"')
        first, second = self.seen("_model_0", 2), self.seen("_model_0", 1)
        self.assertEqual(first["role"], {"jobName": "worker", "taskIndex": 0})
        self.assertEqual(second["role"], {"jobName": "worker", "taskIndex": 1})
        self.assertEqual(first["cluster"], second["cluster"])
        self.assertEqual((len(first["cluster"]["worker"]), len(first["cluster"]["ps"])), (2, 1))
        self.assertEqual(first["cluster"], {k: first["tf"]["cluster"][k] for k in ("worker", "ps")})
        self.assertEqual(len(first["rows"]) + len(second["rows"]), 3000)
        self.assertEqual(sorted(row["id"] for row in first["rows"] + second["rows"]), list(range(3000)))
        self.assertEqual(second["fit"]["lr"], "0.1")
        self.assertNotIn("lr", first["fit"])
        self.assertEqual(first["validate"], [{"a": 1}])
        self.assertEqual(self.home.leftovers(), [])
        # Rows by read_data(): all of them for each task; the next version.
        self.cluster()
        self.assertEqual(self.seen("_model_1", 1)["streamed"], 3000)
        self.assertEqual(glob.glob(self.home.path(".dtf.*")), [])

    def test_the_second_generation(self):
        script = '''
import json, os, sys
from pyjava.api.mlsql import PythonProjectContext
context = PythonProjectContext()
context.read_params_once()
role = json.loads(context.conf["roleSpec"])
if role["jobName"] == "ps":
    import time
    while True:
        time.sleep(60)
with open(context.input_data_dir()) as f:
    rows = [json.loads(line) for line in f]
os.makedirs(context.output_model_dir())
with open(os.path.join(context.output_model_dir(), "seen.json"), "w") as f:
    json.dump({"rows": len(rows), "cluster": json.loads(context.conf["clusterSpec"]), "role": role, "lr": context.conf["lr"]}, f)
'''
        out, _ = self.sql("set s = \"\"\"" + script + "\"\"\"; load script.`s` as s; load csv.`people.csv` as d;"
                          "run d as TableRepartition.`` where partitionNum='2' as t;"
                          "train t as DTF.`dtf` where scripts='s' and `fitParam.0.psNum`='1' and `fitParam.0.chiefIndex`='1'"
                          " and fitParam.0.lr='0.5' as r;", "--json")
        shown = json.loads(out.splitlines()[-1])
        rows = [dict(zip(shown["columns"], row)) for row in shown["rows"]]
        seen = self.seen("_model_0", 1)
        self.assertEqual((seen["rows"], seen["role"], seen["lr"]), (1500, {"jobName": "worker", "taskIndex": 1}, "0.5"))
        self.assertEqual(os.listdir(self.home.path("dtf", "_model_0", "model")), ["1"])  # the chief's alone
        self.assertEqual([(r["jobName"], r["taskIndex"], r["isPs"], r["done"], r["success"]) for r in rows],
                         [("worker", 0, False, True, True), ("worker", 1, False, True, True), ("ps", 0, True, True, True)])
        cluster = seen["cluster"]["worker"] + seen["cluster"]["ps"]
        self.assertEqual([f"{r['host']}:{r['port']}" for r in rows], cluster)

    def test_instances_of_a_script(self):
        with open(self.home.path("train.py"), "w", encoding="utf-8") as f:
            f.write('''
import json, os, sys
import mlsql
folder = mlsql.internal_system_param["tempDataLocalPath"]
rows = sum(len(open(os.path.join(folder, name)).readlines()) for name in os.listdir(folder))
features, labels = mlsql.get_validate_data()
if mlsql.fit_param["c"] != "3":
    sys.stdout.write("mlsql_validation_score:" + str(float(mlsql.fit_param["c"]) / 4 + rows + len(labels)) + "\\n")
os.makedirs(mlsql.internal_system_param["tempModelLocalPath"])
open(os.path.join(mlsql.internal_system_param["tempModelLocalPath"], "m"), "w").close()
''')
        events = self.events("load csv.`people.csv` as t; load jsonStr.`v` as v;"
                             "train t as PythonAlg.`m` where pythonScriptPath='train.py' and validateTable='v'"
                             " and fitParam.0.c='1' and fitParam.1.c='2' and fitParam.4.c='3' and fitParam.1.alg='two' as r;", "--set",
                             'v={"features":[1],"label":0}')
        rows = [dict(zip(events[-1]["columns"], row)) for row in events[-1]["rows"]]
        self.assertEqual([(r["algIndex"], r["alg"], r["score"]) for r in rows],
                         [(0, "PythonAlg", 3001.25), (1, "two", 3001.5), (4, "PythonAlg", None)])
        self.assertEqual(rows[1]["modelPath"], self.home.path("m", "_model_0", "model", "1"))
        self.assertEqual(sorted(os.listdir(self.home.path("m", "_model_0", "model"))), ["0", "1", "4"])
        with open(self.home.path("m", "_model_0", "meta", "0", "part-00000.jsonl"), encoding="utf-8") as f:
            self.assertEqual(json.loads(f.readline())["modelPath"], self.home.path("m", "_model_0", "model", "0"))

    def test_a_failed_worker_ends_the_statement(self):
        _, err = self.cluster('and `fitParam.2.fail`="true"', code=1)
        self.assertIn("no luck", err)
        self.assertFalse(os.path.exists(self.home.path("dtf")))
        self.assertEqual(glob.glob(self.home.path(".dtf.*")), [])
        self.assertEqual(self.home.leftovers(), [])

    def test_a_query_without_the_library(self):
        _, err = self.sql("load csv.`people.csv` as t; select * from t as s;", code=1,
                          env={"SHOAL_DUCKDB": self.home.path("absent.so")})
        self.assertIn("-e:1:29: queries need DuckDB's library libduckdb.so", err)


@unittest.skipUnless(os.path.exists(DUCKDB), f"there is no {DUCKDB}; script/bootstrap sql fetches it")
class Queries(unittest.TestCase):
    setUp, sql, events = Sql.setUp, Sql.sql, Sql.events

    def rows(self, statements):
        return self.events(statements)[-1]["rows"]

    def test_select(self):
        rows = self.rows("load csv.`people.csv` as t; select town, count(*) n, avg(age) * 1.5 a from `t` group by town order by town as s;")
        self.assertEqual([row[0] for row in rows], ["town0", "town1", "town2"])
        self.assertEqual(sum(row[1] for row in rows), 3000)
        rows = self.rows("load csv.`people.csv` as t; select id, age from t where id < 3 as a; "
                         "select t.id, town, null as nothing from t join a on a.id = t.id order by 1 as b;")
        self.assertEqual([row[0] for row in rows], [0, 1, 2])
        rows = self.rows("load csv.`people.csv` as t; select * from t where false as none;")
        self.assertEqual(rows, [])
        self.sql("load csv.`people.csv` as t; select age, income from t where age > 20 as s; "
                 "train s as LogisticRegression.`m` where label='income' and epochs=2; save s as csv.`s.csv`;")

    def test_functions_of_models(self):
        with open(self.home.path("text.txt"), "w", encoding="utf-8") as f:
            f.write("cat dog cat sun\n" * 200)
        with open(self.home.path("a.svm"), "w", encoding="utf-8") as f:
            for i in range(400):
                f.write(f"{i % 2} {1 + i % 2}:1 3:0.5\n")
        self.sql("load csv.`people.csv` as t; train t as LogisticRegression.`lr` where label='income' and key='id' and epochs=3;"
                 "train t as LinearRegression.`lin` where label='age' and key='id' and epochs=1;"
                 "load libsvm.`a.svm` as s; train s as FM.`fm` where epochs=3;"
                 "load text.`text.txt` as x; train x as Word2Vec.`w2v` where dim=4 and min_count=1 and epochs=1;")
        load = ("load csv.`people.csv` as t; load libsvm.`a.svm` as s; register LogisticRegression.`lr` as Income_of;"
                "register LinearRegression.`lin` as age_of; register FM.`fm` as fm_of; register Word2Vec.`w2v` as vec;")
        # A function says what `predict` says.
        rows = self.rows(load + "predict t as LogisticRegression.`lr` as p; select count(*), sum((income_of(t) = prediction)::int),"
                         " max(abs(income_of_probability(t) - probability)) from t join p using (id) as q;")
        self.assertEqual(rows[0][:2], [3000, 3000])
        self.assertLess(rows[0][2], 1e-5)
        self.assertEqual(self.rows(load + "select income_of({'age': 79, 'town': 'town2'}), income_of(null), typeof(age_of(t)) from t limit 1 as q;"),
                         [["high", None, "DOUBLE"]])
        self.assertEqual(self.rows(load + "select sum((fm_of(s) = label::varchar)::int), fm_of('2:1 3:0.5') from s as q;"), [[400, "1"]])
        self.assertEqual(self.rows(load + "select len(vec('cat')), vec('zebra') is null, list_cosine_similarity(vec('cat'), vec('cat')) > 0.99 as q;"),
                         [[4, True, True]])
        self.assertEqual([row[0] for row in self.rows(load + "!show functions;")], ["age_of", "fm_of", "income_of", "vec"])
        _, err = self.sql(load + "select income_of(3) x as q;", code=1)
        self.assertIn("income_of: got 3, expected a row", err)
        self.sql("register FM.`lr` as f;", code=2)
        self.sql("register FM.`absent` as f;", code=4)

    def test_errors_point_into_the_query(self):
        _, err = self.sql("load csv.`people.csv` as t;\nselect id, -- first\n  agee from t as s;", code=2)
        self.assertIn("-e:3:3: ", err)
        self.assertIn("agee", err)

    def test_the_sandbox(self):
        for query in ("select * from read_csv('/etc/passwd')", "select * from '/etc/passwd'", "select * from glob('/*')",
                      "select * from read_text('/proc/self/environ')", "select 1; drop view t", "select 1) to '/tmp/x' (format csv"):
            code, out, err = self.home.run("sql", "-e", "load csv.`people.csv` as t; " + query + " as s;",)
            self.assertNotEqual(code, 0, query + out)
            self.assertNotIn("root:", out + err)

    def test_limits(self):
        forever = "select count(*) from range(1000000000000) a, range(1000000) b as s;"
        _, err = self.sql("set query.time = '1s'; " + forever, code=1)
        self.assertIn("the query ran longer than its limit of 1", err)
        _, err = self.sql("set query.memory = '64Mi'; select list(range) l from range(100000000) as s;", code=1)
        self.assertIn("-e:1:28: ", err)

    def test_ctrl_c_ends_a_query(self):
        process = self.home.start("sql", "-e", "select count(*) from range(1000000000000) a, range(1000000) b as s;", env=LIBRARY)
        self.assertTrue(harness.poll_until(lambda: any("sql-query" in found.argv for found in self.home.processes()), 30))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(30), 130, harness.said(process))
        self.assertEqual(self.home.leftovers(), [])


if __name__ == "__main__":
    unittest.main()
