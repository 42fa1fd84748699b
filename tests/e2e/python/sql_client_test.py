"""`shoal.sql`, `SqlSession` and `Client.sql`: without a server by the command, and with one; interrupts; what packages make of results."""
import asyncio
import importlib.util
import json
import os
import signal
import sys
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("SHOAL_SOURCE") or os.path.abspath(os.path.join(HERE, "..", "..", ".."))
sys.path[:0] = [os.path.join(HERE, "..", "server"), os.path.join(HERE, ".."), os.path.join(SOURCE, "python")]
import harness  # noqa: E402  pylint: disable=wrong-import-position
import shoal  # noqa: E402  pylint: disable=wrong-import-position
import sql_test  # noqa: E402  pylint: disable=wrong-import-position
from server_harness import Server  # noqa: E402  pylint: disable=wrong-import-position

QUERIES = os.path.exists(sql_test.DUCKDB)
ENDLESS = "select count(*) as n from range(10000000000) a, range(1000) b where (a.range * b.range) % 7 = 3 as s;"
TRAIN = "load csv.`{}` as t; train t as FM.`m` where label='income' and epochs='100000' as r;"


def has(package):
    return importlib.util.find_spec(package) is not None


class Local(unittest.TestCase):
    """Sessions of this machine, by the command."""

    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.data = self.home.path("people.csv")
        sql_test.write_people(self.data, 2000, 1)
        kept, here = dict(os.environ), os.getcwd()
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(kept), os.chdir(here)))
        os.environ.update(SHOAL_HOME=self.home.home, TMPDIR=self.home.tmp, XDG_CONFIG_HOME=self.home.path("config"),
                          PATH=os.path.dirname(self.home.binary) + ":" + os.environ["PATH"], SHOAL_SERVER="none", SHOAL_DUCKDB=sql_test.DUCKDB)
        os.chdir(self.home.root)
        self.session = self.make()
        self.addCleanup(self.session.close)

    def make(self):
        return shoal.SqlSession()

    def interrupt_when(self, condition):
        """Sends this process an interrupt once an event fulfils the condition."""
        def on_event(event):
            if condition(event):
                os.kill(os.getpid(), signal.SIGINT)
        return on_event

    def test_results(self):
        result = self.session.run(f"load csv.`{self.data}` as t;", rows=3)
        self.assertEqual((len(result), result.more, result.columns), (3, True, ["id", "age", "town", "income"]))
        self.assertEqual(result.types, ["integer", "integer", "text", "text"])
        self.assertTrue(all(isinstance(value, int) for value in result.column("age")))
        self.assertEqual(result.to_dicts()[1]["id"], 1)
        self.assertIn("the first 3 rows", repr(result))
        with self.assertRaises(KeyError):
            result.column("none")
        self.assertEqual(self.session.run("!show tables;").column("table"), ["t"])
        saved = self.session.run("save overwrite t as json.`saved.json`;")
        self.assertEqual((saved.columns, len(saved.notes)), ([], 1))

    def test_errors(self):
        with self.assertRaises(shoal.SqlError) as caught:
            self.session.run("load cvs.`x` as t;")
        self.assertIn("did you mean 'csv'", str(caught.exception))
        self.assertEqual(caught.exception.code, "invalid argument")
        with self.assertRaises(shoal.SqlError):
            self.session.run("!show nothing;")
        self.assertEqual(self.session.run("!show tables;").rows, [])

    def test_put(self):
        rows = [{"a": 1, "b": "it's ${x} '''"}, {"a": 2, "b": None}]
        self.session.put("given", rows)
        self.assertEqual(self.session.run("!desc given;").column("column"), ["a", "b"])
        self.session.run("save overwrite given as json.`given.json`;")
        with open(self.saved("given.json"), encoding="utf-8") as f:
            self.assertEqual(json.loads(f.readline())["b"], "it's ${x} '''")
        with self.assertRaises(shoal.ShoalError):
            self.session.put("large", [{"a": "x" * 1000}] * 1000)
        with self.assertRaises(ValueError):
            self.session.put("no name", rows)

    def saved(self, name):
        return os.path.join(self.home.root, name)

    def test_complete_and_inspect(self):
        self.session.run(f"load csv.`{self.data}` as people;")
        self.assertEqual(self.session.complete("-- é\n!desc peo", 14), (11, ["people"]))
        self.assertIn("table people", self.session.inspect("!desc people;", 8))
        self.assertEqual(self.session.inspect("!desc nobody;", 8), "")

    def test_train_tells_of_its_progress(self):
        events = []
        result = self.session.run(f"load csv.`{self.data}` as t; train t as FM.`m` where label='income' and epochs='2' as r;", on_event=events.append)
        self.assertEqual(result.column("status"), ["success"])
        self.assertEqual(len(result.jobs), 1)
        self.assertEqual(result.column("job"), result.jobs)
        self.assertIn("progress", [event.get("event") for event in events])

    def test_an_interrupt_stops_the_job(self):
        self.session.run("!show tables;")
        with self.assertRaises(KeyboardInterrupt):
            self.session.run(TRAIN.format(self.data), on_event=self.interrupt_when(lambda e: e.get("event") == "progress"))
        states = self.session.run("!show jobs;").column("state")
        self.assertEqual(states, ["cancelled"])

    @unittest.skipUnless(QUERIES, f"there is no {sql_test.DUCKDB}")
    def test_cancel_stops_a_query(self):
        timer = threading.Timer(1.0, self.session.cancel)
        timer.start()
        self.addCleanup(timer.cancel)
        with self.assertRaises(shoal.SqlError) as caught:
            self.session.run(ENDLESS)
        self.assertEqual(caught.exception.code, "cancelled")
        self.assertEqual(self.session.run("select 1 as one, date '2026-11-27' as day as s;").rows[0][0], 1)

    @unittest.skipUnless(QUERIES, f"there is no {sql_test.DUCKDB}")
    def test_times(self):
        result = self.session.run("select date '2026-11-27' as day, timestamp '2026-11-27 10:00:00' as at, 1.5::double as x, null as n as s;")
        self.assertEqual([str(value) for value in result.rows[0]], ["2026-11-27", "2026-11-27 10:00:00", "1.5", "None"])

    def test_packages(self):
        result = self.session.run(f"load csv.`{self.data}` as t;", rows=10)
        for package, convert in (("pandas", result.to_pandas), ("pyarrow", result.to_arrow)):
            if has(package):
                made = convert()
                self.assertEqual((made.shape if package == "pandas" else (made.num_rows, made.num_columns)), (10, 4))
            else:
                with self.assertRaisesRegex(shoal.ShoalError, f"pip install {package}"):
                    convert()


class OfServer(Local):
    """The same at a server."""

    def make(self):
        self.server = Server(self.home)
        self.addCleanup(self.server.__exit__)
        self.server.start()
        os.environ["SHOAL_SERVER"] = self.server.url
        os.environ["SHOAL_TOKEN"] = self.server.make_user("ada", "red")
        return shoal.SqlSession()

    def saved(self, name):
        return os.path.join(self.server.state, "work", "red", name)

    def test_clients(self):
        with shoal.Client() as client:
            client.sql(f"load csv.`{self.data}` as t;")
            self.assertEqual(client.sql("!show tables;").column("table"), ["t"])
            with client.sql_session("red") as other:
                self.assertEqual(other.run("!show tables;").rows, [])
        self.assertEqual([one["state"] for one in self.server.get("/teams/red/sql").json["items"]].count("idle"), 0)

    def test_asyncio(self):
        async def go():
            async with shoal.AsyncClient() as client:
                result = await client.sql(f"load csv.`{self.data}` as t;", rows=2)
                self.assertEqual(len(result), 2)
                begun = asyncio.Event()
                loop = asyncio.get_running_loop()
                task = asyncio.ensure_future(client.sql(TRAIN.format(self.data), on_event=lambda e: e.get("event") == "progress"
                                                        and loop.call_soon_threadsafe(begun.set)))
                await asyncio.wait_for(begun.wait(), 60 * harness.PATIENCE)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                states = (await client.sql("!show jobs;")).column("state")
                self.assertEqual(states, ["cancelled"])
        asyncio.run(go())


class Defaults(unittest.TestCase):
    def test_without_the_command(self):
        kept = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(kept)))
        os.environ.update(SHOAL_SERVER="none", PATH="/nowhere")
        with self.assertRaisesRegex(shoal.SubmissionError, "install the wheel"):
            shoal.SqlSession()

    def test_pages_are_escaped(self):
        result = shoal.SqlResult(["<a>"], [["<script>x</script>"], ["a\x1b[31mb"]], ["text"])
        page = result._repr_html_()  # pylint: disable=protected-access
        self.assertNotIn("<script", page)
        self.assertNotIn("<a>", page)
        self.assertNotIn("\x1b", page + repr(result))

    def test_values_that_are_not_of_their_type_stay(self):
        result = shoal.SqlResult(["a", "b"], [["1", "x"], ["none", None]], ["integer", "DATE"])
        self.assertEqual(result.rows, [["1", "x"], ["none", None]])


if __name__ == "__main__":
    unittest.main()
