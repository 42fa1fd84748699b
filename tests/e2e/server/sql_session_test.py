"""SQL at a server: sessions over REST, their jobs, rights, limits, and what is left when they end."""
import json
import os
import signal
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from server_harness import PATIENCE, Events, Server, poll_until  # noqa: E402  pylint: disable=wrong-import-position
import harness  # noqa: E402  pylint: disable=wrong-import-position
import sql_test  # noqa: E402  pylint: disable=wrong-import-position

QUERIES = os.path.exists(sql_test.DUCKDB)
ENDLESS = "select count(*) as n from range(10000000000) a, range(1000) b where (a.range * b.range) % 7 = 3 as s;"
SCRIPT = """
import json, os
import mlsql
rows = 0
for name in os.listdir(mlsql.internal_system_param["tempDataLocalPath"]):
    with open(os.path.join(mlsql.internal_system_param["tempDataLocalPath"], name)) as f:
        rows += len(f.readlines())
os.makedirs(mlsql.internal_system_param["tempModelLocalPath"])
with open(os.path.join(mlsql.internal_system_param["tempModelLocalPath"], "seen.json"), "w") as f:
    json.dump({"rows": rows, "fit": mlsql.fit_param}, f)
print("mlsql_validation_score:0.5", flush=True)
"""


class SqlServer(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.__exit__)
        os.chmod(self.server.home.path(""), 0o711)
        self.server.start()
        self.ada = self.server.make_user("ada", "red")
        self.data = self.server.home.path("people.csv")
        sql_test.write_people(self.data, 2000, 1)

    def session(self, token=None):
        reply = self.server.post("/teams/red/sql", {}, token or self.ada)
        self.assertEqual(reply.status, 201, reply)
        return f"/teams/red/sql/{reply.json['id']}"

    def begin(self, session, text, token=None, **fields):
        reply = self.server.post(session + "/statements", {"text": text, **fields}, token or self.ada)
        self.assertEqual(reply.status, 202, reply)
        return reply.json

    def events(self, session, began, until="finished", token=None):
        """The events of statements up to their end."""
        found, at = [], began["after"]

        def ended():
            nonlocal at
            page = self.server.get(f"{session}/events?after={at}&limit=1000" if at != "0" else f"{session}/events?limit=1000",
                                   token or self.ada)
            self.assertEqual(page.status, 200, page)
            found.extend(page.json["items"])
            at = page.json["next"]
            return any(e["event"] == until and e["id"] == began["statement"] for e in found)

        self.assertTrue(poll_until(ended, 60 * PATIENCE, 0.02), found)
        return found

    def run_sql(self, session, text, **fields):
        """The rows, as dicts, and the last event."""
        events = self.events(session, self.begin(session, text, **fields))
        rows = [e for e in events if e["event"] == "rows"]
        table = [dict(zip(rows[-1]["columns"], row)) for row in rows[-1]["rows"]] if rows else []
        return table, events[-1]

    def failure(self, session, text):
        _, last = self.run_sql(session, text)
        self.assertFalse(last["ok"], last)
        return last["code"] + ": " + last["error"]

    def children(self):
        found = []
        for pid in (p for p in os.listdir("/proc") if p.isdigit()):
            process = harness.read_process(pid)
            # Their environment cannot be read: they are not dumpable.
            if process and process.argv[1:2] in (["sql-session"], ["sql-query"]) and process.argv[0] == self.server.home.binary:
                if self.belongs(int(pid)):
                    found.append(process)
        return found

    def belongs(self, pid):
        """Whether the process descends from this test's server."""
        while pid > 1:
            if pid == self.server.process.pid:
                return True
            process = harness.read_process(str(pid))
            pid = process.ppid if process else 0
        return False


class Statements(SqlServer):
    def test_tables_live_from_statement_to_statement(self):
        session = self.session()
        rows, last = self.run_sql(session, f"load csv.`{self.data}` as t;", rows=3)
        self.assertEqual((len(rows), last["ok"]), (3, True))
        self.assertEqual(sorted(rows[0]), ["age", "id", "income", "town"])
        rows, _ = self.run_sql(session, "!show tables;")
        self.assertEqual([row["table"] for row in rows], ["t"])
        self.assertEqual(self.server.get(session, self.ada).json["statements"], 2)
        _, last = self.run_sql(session, "save overwrite t as json.`saved.json`;")
        self.assertTrue(last["ok"], last)
        # Relative paths are those of the team's directory.
        with open(os.path.join(self.server.state, "work", "red", "saved.json"), encoding="utf-8") as f:
            self.assertEqual(len(f.readlines()), 2000)

    @unittest.skipUnless(QUERIES, f"there is no {sql_test.DUCKDB}; `script/bootstrap sql` fetches it")
    def test_queries(self):
        session = self.session()
        rows, last = self.run_sql(session, f"load csv.`{self.data}` as t; select town, count(*) as n from t group by town order by town as s;")
        self.assertTrue(last["ok"], last)
        self.assertEqual([row["town"] for row in rows], ["town0", "town1", "town2"])
        self.assertEqual(sum(row["n"] for row in rows), 2000)
        refused = self.failure(session, "select * from read_text('/etc/passwd') as s;")
        self.assertNotIn("root:", refused)
        # A query that would run for ever ends at its limit, and the session goes on.
        self.assertIn("limit of 1s", self.failure(session, f"set query.time = '1s'; {ENDLESS}").replace("1.0 s", "1s").replace("1 s", "1s"))
        memory = "set query.time = '60s'; set query.memory = '64Mi'; select list(range) as l from range(100000000) as s;"
        self.assertIn("emory", self.failure(session, memory))
        rows, _ = self.run_sql(session, "select 1 as one as s;")
        self.assertEqual(rows, [{"one": 1}])

    def test_train_is_a_job_of_the_user(self):
        session = self.session()
        began = self.begin(session, f"load csv.`{self.data}` as t; train t as LogisticRegression.`income` where label='income' and key='id'"
                                    " and epochs='3' as r;")
        events = self.events(session, began)
        self.assertTrue(events[-1]["ok"], events[-1])
        kinds = [e["event"] for e in events]
        self.assertIn("progress", kinds)
        job = next(e["job"] for e in events if e["event"] == "submitted")
        states = [e["state"] for e in events if e["event"] == "state" and e["job"] == job]
        self.assertEqual(states[-1], "succeeded")
        record = self.server.get(f"/jobs/{job}", self.ada).json
        self.assertEqual((record["user"], record["team"], record["state"]), ("ada", "red", "succeeded"))
        rows, _ = self.run_sql(session, "predict t as LogisticRegression.`income` as p;", rows=5)
        self.assertEqual(len(rows), 5)
        self.assertIn("prediction", rows[0])
        rows, _ = self.run_sql(session, "!show jobs;")
        self.assertIn(job, [row["job"] for row in rows])
        actions = [e["action"] for e in self.server.get("/audit?limit=100").json["items"]]
        for action in ("createSqlSession", "runSql", "submitJob", "readSqlEvents"):
            self.assertIn(action, actions)
        entry = next(e for e in self.server.get(f"/audit?object={job}").json["items"] if e["action"] == "submitJob")
        self.assertEqual(entry["user"], "ada")

    def test_programs_of_the_team(self):
        folder = os.path.join(self.server.state, "work", "red")
        session = self.session()
        with open(os.path.join(folder, "script.py"), "w", encoding="utf-8") as f:
            f.write(SCRIPT)
        rows, last = self.run_sql(session, f"load csv.`{self.data}` as t; train t as PythonAlg.`m` where pythonScriptPath='script.py' and"
                                           " systemParam.pythonPath='python3' and fitParam.0.a='1' and fitParam.1.a='2' as r;")
        self.assertTrue(last["ok"], last)
        self.assertEqual([row["score"] for row in rows], [0.5, 0.5])
        seen = os.path.join(rows[0]["modelPath"], "seen.json")
        with open(seen, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["rows"], 2000)

    def test_a_job_that_fails_or_is_refused_fails_its_statement(self):
        session = self.session()
        self.run_sql(session, f"load csv.`{self.data}` as t;")
        self.assertIn("epochs", self.failure(session, "train t as FM.`m` where label='income' and epochs='many';"))
        self.assertIn("expected one of", self.failure(session, "train t as FM.`m` where label='income' and engine='none';"))
        self.assertEqual(self.server.get(session, self.ada).json["state"], "idle")

    def test_errors_show_their_place(self):
        session = self.session()
        error = self.failure(session, "load cvs.`x` as t;")
        self.assertIn("statement 1:1:6", error)
        self.assertIn("did you mean 'csv'", error)
        self.assertIn("^~~", error)

    def test_stream(self):
        session = self.session()
        stream = Events(self.server, f"{session}/events", self.ada)
        began = self.begin(session, f"load csv.`{self.data}` as t;")
        self.assertTrue(stream.wait(lambda e: e["event"] == "finished" and e["data"]["id"] == began["statement"]), stream.events)
        first = next(e for e in stream.events if e["event"] == "rows")
        stream.close()
        again = Events(self.server, f"{session}/events", self.ada, {"Last-Event-ID": first["id"]})
        self.assertTrue(again.wait(lambda e: e["event"] == "finished"))
        self.assertNotIn("rows", [e["event"] for e in again.events])
        self.server.request("DELETE", session, token=self.ada)
        self.assertTrue(again.wait(lambda e: e["event"] == "ended"))
        self.assertTrue(again.closed.wait(30 * PATIENCE))

    def test_completion_and_inspection(self):
        session = self.session()
        self.run_sql(session, f"load csv.`{self.data}` as people;")
        text = "select a from people where peo"
        reply = self.server.post(session + "/complete", {"text": text, "cursor": len(text)}, self.ada)
        self.assertEqual(reply.json, {"begin": len(text) - 3, "candidates": ["people"]})
        reply = self.server.post(session + "/inspect", {"text": text, "cursor": len(text) - 12}, self.ada)
        self.assertIn("table people, csv", reply.json["text"])
        self.assertIn("income", reply.json["text"])


class Stops(SqlServer):
    def test_cancel_stops_the_job(self):
        session = self.session()
        began = self.begin(session, f"load csv.`{self.data}` as t; train t as FM.`m` where label='income' and epochs='100000' as r;")

        def job():
            page = self.server.get(f"{session}/events?limit=1000", self.ada).json["items"]
            return next((e["job"] for e in page if e["event"] == "state" and e["state"] == "running"), None)

        running = poll_until(job, 60 * PATIENCE, 0.02)
        self.assertTrue(running)
        self.assertEqual(self.server.post(session + "/statements", {"text": "!show tables;"}, self.ada).status, 409)
        self.assertEqual(self.server.post(session + "/cancel", {}, self.ada).status, 202)
        last = self.events(session, began)[-1]
        self.assertEqual((last["ok"], last["code"]), (False, "cancelled"), last)
        self.assertEqual(self.server.wait_for_end(running)["state"], "cancelled")
        _, last = self.run_sql(session, "!show tables;")
        self.assertTrue(last["ok"])

    @unittest.skipUnless(QUERIES, f"there is no {sql_test.DUCKDB}")
    def test_cancel_stops_a_query(self):
        session = self.session()
        began = self.begin(session, ENDLESS)
        self.assertTrue(poll_until(lambda: len(self.children()) == 2, 30 * PATIENCE, 0.02))
        self.server.post(session + "/cancel", {}, self.ada)
        last = self.events(session, began)[-1]
        self.assertEqual(last["code"], "cancelled", last)
        self.assertEqual(len(self.children()), 1)

    @unittest.skipUnless(QUERIES, f"there is no {sql_test.DUCKDB}")
    def test_the_end_of_a_session_ends_its_query(self):
        session = self.session()
        began = self.begin(session, ENDLESS)
        self.assertTrue(poll_until(lambda: len(self.children()) == 2, 30 * PATIENCE, 0.02))
        self.assertEqual(self.server.request("DELETE", session, token=self.ada).status, 204)
        self.assertTrue(poll_until(lambda: not self.children(), 30 * PATIENCE, 0.02))
        events = self.events(session, began, until="ended")
        self.assertIn("ended by ada", events[-1]["reason"])
        self.assertEqual(self.server.post(session + "/statements", {"text": "!show tables;"}, self.ada).status, 409)
        self.assertTrue(poll_until(lambda: not os.listdir(os.path.join(self.server.state, "sql")), 30 * PATIENCE, 0.02))

    @unittest.skipUnless(QUERIES, f"there is no {sql_test.DUCKDB}")
    def test_a_killed_server_leaves_no_process(self):
        session = self.session()
        self.begin(session, ENDLESS)
        self.assertTrue(poll_until(lambda: len(self.children()) == 2, 30 * PATIENCE, 0.02))
        pids = [process.pid for process in self.children()]
        self.server.kill()
        self.assertTrue(poll_until(lambda: not any(harness.read_process(str(pid)) for pid in pids), 30 * PATIENCE, 0.02))
        self.server.start()
        self.assertEqual(self.server.get(session, self.ada).status, 404)
        self.assertEqual(os.listdir(os.path.join(self.server.state, "sql")), [])

    def test_a_killed_process_ends_its_session_only(self):
        session, other = self.session(), self.session()
        self.run_sql(session, "!show tables;")
        self.run_sql(other, "!show tables;")
        ids = {process.pid for process in self.children()}
        self.assertEqual(len(ids), 2)
        os.kill(min(ids), signal.SIGKILL)
        states = lambda: sorted(self.server.get(s, self.ada).json["state"] for s in (session, other))  # noqa: E731
        self.assertTrue(poll_until(lambda: states() == ["ended", "idle"], 30 * PATIENCE, 0.02), states())


class Rights(SqlServer):
    def test_sessions_are_their_users(self):
        session = self.session()
        bob = self.server.make_user("bob", "red")
        viewer = self.server.make_user("eve", "red", "viewer")
        stranger = self.server.make_user("mallory", "blue")
        self.run_sql(session, f"load csv.`{self.data}` as t;")
        for token, status in ((bob, 404), (viewer, 403), (stranger, 404)):
            for method, target, body in (("GET", session, None), ("GET", session + "/events", None), ("DELETE", session, None),
                                         ("POST", session + "/statements", {"text": "!show tables;"}),
                                         ("POST", session + "/cancel", {})):
                self.assertEqual(self.server.request(method, target, body, token).status, status, (method, target))
        self.assertEqual(self.server.get("/teams/red/sql", bob).json["items"], [])
        # An administrator sees and ends sessions, and runs nothing in them.
        self.assertEqual(len(self.server.get("/teams/red/sql").json["items"]), 1)
        self.assertEqual(self.server.post(session + "/statements", {"text": "!show tables;"}).status, 403)
        narrow = self.server.post("/tokens", {"user": "ada", "scopes": ["jobs:read", "jobs:write"]}).json["token"]
        self.assertEqual(self.server.get(session + "/events", narrow).status, 403)
        reader = self.server.post("/tokens", {"user": "ada", "scopes": ["jobs:read", "data:read"]}).json["token"]
        self.assertEqual(self.server.post(session + "/statements", {"text": "!show tables;"}, reader).status, 403)

    def test_a_revoked_token_ends_its_session(self):
        made = self.server.post("/tokens", {"user": "ada"}).json
        session = self.session(made["token"])
        self.begin(session, "!show tables;", made["token"])
        self.assertEqual(self.server.request("DELETE", f"/tokens/{made['id']}").status, 204)
        self.assertTrue(poll_until(lambda: self.server.get(session, self.ada).json["state"] == "ended", 60 * PATIENCE, 0.1))

    def test_paths(self):
        session = self.session()
        state = self.server.state
        os.symlink(os.path.join(state, "administrator.token"), os.path.join(state, "work", "red", "link.txt"))
        for path in (f"{state}/administrator.token", f"{state}/work/red/../../administrator.token", "link.txt", "*.txt", f"{state}/*",
                     "../../administrator.token", "s3://bucket/x", f"{state}/work/blue/x"):
            error = self.failure(session, f"load text.`{path}` as t;")
            self.assertIn("permission denied", error, path)
            self.assertNotIn("shoal_", error)
        self.run_sql(session, f"load csv.`{self.data}` as t;")
        for statement in ("save overwrite t as csv.`{p}`;", "train t as FM.`{p}` where label='income';", "predict t as FM.`{p}`;",
                          "register FM.`{p}` as f;", "include file.`{p}`;",
                          "train t as PythonAlg.`m` where pythonScriptPath='{p}' and fitParam.0.a='1';"):
            self.assertIn("permission denied", self.failure(session, statement.format(p=f"{state}/jobs/x")), statement)

    def test_policies(self):
        allowed = self.server.home.path("allowed")
        os.mkdir(allowed)
        self.assertEqual(self.server.request("PUT", "/teams/red/policy", {"paths": [allowed]}).status, 200)
        session = self.session()
        self.assertIn("permission denied", self.failure(session, f"load csv.`{self.data}` as t;"))
        with open(os.path.join(allowed, "a.csv"), "w", encoding="utf-8") as f:
            f.write("a,b\n1,2\n")
        _, last = self.run_sql(session, f"load csv.`{allowed}/*.csv` as t;")
        self.assertTrue(last["ok"], last)
        self.assertEqual(self.server.request("PUT", "/teams/red/policy", {"engines": ["cluster-*"]}).status, 200)
        reply = self.server.post("/teams/red/sql", {}, self.ada)
        self.assertEqual(reply.status, 403, reply)
        self.assertIn("engine of the kind local", reply.detail)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to run a session as another user")
    def test_a_session_runs_as_the_teams_user(self):
        os.chmod(self.data, 0o644)
        self.assertEqual(self.server.request("PUT", "/teams/red/policy", {"user": "61101:61101", "isolated": True}).status, 200)
        session = self.session()
        _, last = self.run_sql(session, f"load csv.`{self.data}` as t; save overwrite t as csv.`mine.csv`;")
        self.assertTrue(last["ok"], last)
        self.assertEqual(os.stat(os.path.join(self.server.state, "work", "red+61101", "mine.csv")).st_uid, 61101)
        self.assertNotIn("root:", self.failure(session, "load text.`/etc/shadow` as t;"))
        with open(f"/proc/{self.children()[0].pid}/status", encoding="utf-8") as f:
            status = dict(line.rstrip().split(":\t", 1) for line in f if ":\t" in line)
        self.assertEqual((status["Uid"].split(), status["NoNewPrivs"]), (["61101"] * 4, "1"))
        rows, last = self.run_sql(session, "train t as FM.`m` where label='income' and epochs='1' as r;")
        self.assertTrue(last["ok"], last)
        self.assertEqual(os.stat(rows[0]["modelPath"]).st_uid, 61101)


class Limits(SqlServer):
    def test_number_of_sessions(self):
        for _ in range(4):
            self.session()
        reply = self.server.post("/teams/red/sql", {}, self.ada)
        self.assertEqual(reply.status, 429, reply)
        self.assertIn("end one", reply.detail)

    def test_sizes(self):
        session = self.session()
        self.assertEqual(self.server.post(session + "/statements", {"text": "x" * ((1 << 20) + 1)}, self.ada).status, 422)
        self.assertEqual(self.server.post(session + "/statements", {"text": "!show tables;", "rows": 100_001}, self.ada).status, 422)
        with open(self.server.home.path("wide.csv"), "w", encoding="utf-8") as f:
            f.write("a\n" + f"{'x' * 100_000}\n" * 100)
        rows, last = self.run_sql(session, f"load csv.`{self.server.home.path('wide.csv')}` as t;")
        self.assertTrue(last["ok"], last)
        self.assertLess(len(rows), 60)  # 4 MiB
        self.assertGreater(len(rows), 20)

    def test_bad_statements(self):
        session = self.session()
        folder = os.path.join(self.server.state, "work", "red")
        with open(os.path.join(folder, "again.sql"), "w", encoding="utf-8") as f:
            f.write("include file.`again.sql`;")
        self.assertIn("include each other", self.failure(session, "include file.`again.sql`;"))
        self.assertIn("include each other", self.failure(session, "set bomb = '''!bomb;'''; !bomb;"))
        self.failure(session, "set x = 'never closed;")
        self.failure(session, "select (((1 as s;")
        self.failure(session, "\x00;")
        self.failure(session, "load csv.`" + "a" * 5000 + "` as t;")
        grown = "set a = '" + "x" * 1000 + "'; " + "".join(f"set a = '${{a}}${{a}}${{a}}${{a}}'; " for _ in range(12))
        self.assertIn("1 MiB", self.failure(session, grown).replace("1,048,576 bytes", "1 MiB").replace("1048576", "1 MiB"))
        _, last = self.run_sql(session, "!show variables;")
        self.assertTrue(last["ok"])

    def test_two_sessions_save_to_one_path(self):
        sessions = [self.session(), self.session()]
        for session in sessions:
            self.run_sql(session, f"load csv.`{self.data}` as t;")
        began = [self.begin(session, "save overwrite t as csv.`both`;" * 20) for session in sessions]
        ends = [self.events(session, one)[-1] for session, one in zip(sessions, began)]
        self.assertTrue(any(end["ok"] for end in ends), ends)
        folder = os.path.join(self.server.state, "work", "red", "both")
        self.assertEqual(sorted(os.listdir(folder)), ["_SUCCESS", "part-00000.csv"])
        with open(os.path.join(folder, "part-00000.csv"), encoding="utf-8") as f:
            self.assertEqual(len(f.readlines()), 2001)


if __name__ == "__main__":
    unittest.main()
