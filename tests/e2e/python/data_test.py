"""`shoal.data`: the tasks of jobs of any framework read exact parts, of files of all formats and through a gate, and go on at the exact
record after they were killed."""
import collections
import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "server")]
from harness import DEFAULT_BINARY, SOURCE, Home  # noqa: E402  pylint: disable=wrong-import-position
from parquet_file import parquet  # noqa: E402  pylint: disable=wrong-import-position
from server_harness import Server  # noqa: E402  pylint: disable=wrong-import-position
sys.path.insert(0, os.path.join(SOURCE, "python"))
try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
os.environ["SHOAL_PROGRAM"] = DEFAULT_BINARY
import shoal.data  # noqa: E402  pylint: disable=wrong-import-position

ROWS = 1000
# Appends the ids of each batch to a file of its task; dies after some batches in its first attempts.
PROGRAM = """\
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import shoal.data
out, deaths = sys.argv[2], int(sys.argv[3])
name = f"{out}/{os.environ['SHOAL_ROLE']}-{os.environ['SHOAL_INDEX']}-{os.environ['SHOAL_LOCAL_RANK']}"
with shoal.data.read("train", batch=16, resume=name + ".position") as reader:
    for i, batch in enumerate(reader):
        # In the middle of a batch, which is then given again.
        if i == 2 and int(os.environ["SHOAL_ATTEMPT"]) < deaths:
            os.kill(os.getpid(), signal.SIGKILL)
        with open(name, "a") as f:
            f.write("".join(f"{row['id']}\\n" for row in batch.dicts()))
"""
JOB = """\
name: reader
framework: %s
data: {train: {source: "%s"}}
roles:
  worker: {replicas: 3, command: [%s, -B, %s, %s, %s, "%d"], restart: {limit: 5, backoff: 0s}%s}
"""


def records():
    return [{"id": i, "value": i / 4, "town": f"town, {i % 7}"} for i in range(ROWS)]


def table(rows):
    return "id,value,town\n" + "".join(f"{r['id']},{r['value']},\"{r['town']}\"\n" for r in rows)


def lines(rows):
    return "".join(json.dumps(r) + "\n" for r in rows)


class DataTest(unittest.TestCase):
    def setUp(self):
        self.home = Home()
        self.addCleanup(self.home.__exit__)
        rows = records()
        os.mkdir(self.home.path("out"))
        self.csv = self.home.write("a.csv", table(rows[:300])), self.home.write("b.csv", table(rows[300:]))
        self.jsonl = self.home.write("all.jsonl", lines(rows))
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        self.parquet = self.home.write("all.parquet", parquet(columns, 170))
        self.program = self.home.write("read.py", PROGRAM)

    def run_job(self, source, deaths=0, framework="generic", more=""):
        text = JOB % (framework, source, sys.executable, self.program, os.path.join(SOURCE, "python"), self.home.path("out"), deaths, more)
        done = self.home.run("run", self.home.write("job.yaml", text), seconds=120)
        self.assertEqual(done[0], 0, done)
        seen = collections.Counter()
        parts = {}
        for name in os.listdir(self.home.path("out")):
            if name.endswith(".position"):
                continue
            with open(self.home.path("out", name), encoding="ascii") as f:
                parts[name] = [int(line) for line in f]
            seen.update(parts[name])
        return seen, parts

    def check(self, seen):
        self.assertEqual(seen, collections.Counter(range(ROWS)))

    def test_each_task_reads_its_part(self):
        for source in (self.home.path("?.csv"), self.jsonl, self.parquet):
            with self.subTest(source):
                seen, parts = self.run_job(source)
                self.check(seen)
                self.assertEqual(sorted(parts), ["worker-0-0", "worker-1-0", "worker-2-0"])
                if source == self.parquet:
                    self.assertEqual({len(ids) for ids in parts.values()}, {333, 334})
                for name in os.listdir(self.home.path("out")):
                    os.remove(self.home.path("out", name))

    def test_killed_tasks_go_on_at_the_exact_record(self):
        seen, _ = self.run_job(self.jsonl, deaths=3)
        self.check(seen)

    def test_processes_of_a_task_share_its_part(self):
        seen, parts = self.run_job(self.jsonl, framework="pytorch", more=", processes: 2")
        self.check(seen)
        self.assertEqual(len(parts), 6)

    def test_types(self):
        with shoal.data.read(self.parquet, batch=400) as reader:
            batches = list(reader)
        self.assertEqual([b.rows for b in batches], [400, 400, 200])
        self.assertEqual(batches[0]["id"].dtype, np.int64)
        self.assertEqual(batches[0]["value"].dtype, np.float64)
        self.assertEqual(batches[2]["town"][199], f"town, {999 % 7}")
        self.assertEqual(list(batches[1].dicts())[0], {"id": 400, "value": 100.0, "town": "town, 1"})
        typed = self.home.write("typed.jsonl", '{"b": true, "l": [1, 2], "n": 1, "t": "x", "s": ["p"]}\n'
                                               '{"b": null, "l": [3], "n": null, "t": null, "s": []}\n')
        batch = next(shoal.data.read(typed))
        self.assertEqual(list(batch["b"]), [True, None])
        self.assertEqual([list(x) for x in batch["l"]], [[1, 2], [3]])
        self.assertTrue(np.isnan(batch["n"][1]))
        self.assertEqual(list(batch["t"]), ["x", None])
        self.assertEqual([list(x) for x in batch["s"]], [["p"], []])
        svm = self.home.write("a.libsvm", "+1 3:0.5 9:1\n-1 4:2\n")
        batch = next(shoal.data.read(svm))
        self.assertEqual(list(batch["label"]), [1, -1])
        self.assertEqual([list(x) for x in batch["indices"]], [[3, 9], [4]])

    def test_positions(self):
        reader = shoal.data.read(self.jsonl, batch=300)
        self.assertIsNone(reader.position)
        first = next(reader)
        reader.close()
        self.assertEqual(first.position, reader.position)
        rest = [list(b["id"]) for b in shoal.data.read(self.jsonl, batch=500, position=first.position)]
        self.assertEqual(rest, [list(range(300, 800)), list(range(800, 1000))])
        with self.assertRaisesRegex(shoal.data.DataError, "position: it is one of other data"):
            next(shoal.data.read(self.csv, position=first.position))
        with self.assertRaisesRegex(shoal.data.DataError, "it is one of part 0/1"):
            next(shoal.data.read(self.jsonl, part=(0, 2), position=first.position))

    def test_a_shuffled_part(self):
        """Each record once, in the order of the seed; a position goes on in it."""
        ids = [i for batch in shoal.data.read(self.jsonl, batch=100, shuffle=1) for i in batch["id"]]
        self.assertEqual(sorted(ids), list(range(ROWS)))
        self.assertNotEqual(ids, sorted(ids))
        other = [i for batch in shoal.data.read(self.jsonl, batch=100, shuffle=2) for i in batch["id"]]
        self.assertNotEqual(ids, other)
        reader = shoal.data.read(self.jsonl, batch=300, shuffle=1)
        position = next(reader).position
        reader.close()
        rest = [i for batch in shoal.data.read(self.jsonl, shuffle=1, position=position) for i in batch["id"]]
        self.assertEqual(rest, ids[300:])
        with self.assertRaisesRegex(shoal.data.DataError, "the order of seed 1 with windows of 100000, expected the order of seed 2"):
            next(shoal.data.read(self.jsonl, shuffle=2, position=position))
        with self.assertRaisesRegex(shoal.data.DataError, "--shuffle: got -1, expected a whole number from 0 on"):
            next(shoal.data.read(self.jsonl, shuffle=-1))

    def test_what_is_wrong_is_told(self):
        with self.assertRaisesRegex(shoal.data.DataError, "nowhere.csv"):
            next(shoal.data.read("nowhere.csv"))
        broken = self.home.write("broken.jsonl", lines(records()) + "{\n")
        with self.assertRaisesRegex(shoal.data.DataError, "broken.jsonl:1001 .*: expected a JSON object"):
            list(shoal.data.read(broken))
        self.assertEqual(sum(b.rows for b in shoal.data.read(broken, max_bad=0.01)), ROWS)
        with self.assertRaisesRegex(shoal.data.DataError, "no column color"):
            next(shoal.data.read(self.jsonl, columns=["id", "color"]))

    def test_a_closed_reader_ends_its_child(self):
        reader = shoal.data.read(self.home.write("big.jsonl", lines(records()) * 200))
        next(reader)
        child = reader._frames._child  # pylint: disable=protected-access
        reader.close()
        self.assertIsNotNone(child.poll())

    def test_local_files(self):
        folder = self.home.path("parts")
        paths = [shoal.data.local(self.csv, folder, part=(i, 3)) for i in range(3)]
        texts = []
        for path in paths:
            with open(path, encoding="utf-8") as f:
                texts.append(f.read())
        self.assertTrue(all(t.startswith("id,value,town\n") for t in texts))
        self.assertEqual("id,value,town\n" + "".join(t[14:] for t in texts), table(records()))
        with open(os.path.join(folder, "_SUCCESS-part-00001-of-00003"), encoding="utf-8") as f:
            self.assertEqual(json.load(f)["files"][0]["records"], texts[1].count("\n") - 1)
        with self.subTest("what is there is not read again"):
            before = os.stat(paths[1]).st_mtime_ns
            self.assertEqual(shoal.data.local(self.csv, folder, part=(1, 3)), paths[1])
            self.assertEqual(os.stat(paths[1]).st_mtime_ns, before)
        with self.subTest("unless the data has changed"):
            self.home.write("b.csv", table(records()[300:900]))
            shoal.data.local(self.csv, folder, part=(1, 3))
            self.assertNotEqual(os.stat(paths[1]).st_mtime_ns, before)

    def test_other_roles_are_told(self):
        text = "data: {train: {source: %s, shard_by: other}}\nroles:\n  other: {command: ['true']}\n" \
               "  worker: {command: [sh, -c, '$SHOAL_PROGRAM data read train; true']}\n" % self.jsonl
        done = self.home.run("run", self.home.write("job.yaml", text))
        self.assertIn("the data train is divided among the tasks of the role other, and this is one of worker", done[1])

    def test_frameworks(self):
        for adapter in (shoal.data.torch_dataset, shoal.data.tf_dataset):
            with self.subTest(adapter.__name__):
                try:
                    got = sum(float(b["value"].sum() if hasattr(b["value"], "sum") else b["value"].numpy().sum())
                              for b in adapter(self.parquet, batch=100))
                except ImportError as missing:
                    self.skipTest(str(missing))
                self.assertEqual(got, sum(r["value"] for r in records()))


class GateTest(unittest.TestCase):
    def test_a_part_through_a_gate(self):
        server = Server()
        self.addCleanup(server.__exit__)
        server.start()
        kim, ada = server.make_user("kim", "hr", "operator"), server.make_user("ada", "research", "member")
        os.mkdir(server.home.path("data"))
        os.mkdir(server.home.path("out"))
        columns = {name: [row[name] for row in records()] for name in records()[0]}
        source = server.home.write("data/all.parquet", parquet(columns, 170))
        for words, token in ((("create", "database", "hr", "--team", "hr", "--location", server.home.path("data") + "/"), ""),
                             (("create", "table", "hr.rows", "--source", source), kim),
                             (("grant", "hr.rows", "--to", "user:ada", "--columns", "id,town", "--rows", "value < 100"), kim)):
            done = server.shoal("catalog", *words, token=token)
            self.assertEqual(done[0], 0, done)
        program = server.home.write("read.py", PROGRAM.replace("f.write(", "assert set(batch) == {'id', 'town'}; f.write("))
        text = JOB % ("generic", "x", sys.executable, program, os.path.join(SOURCE, "python"), server.home.path("out"), 2, "")
        text = text.replace('source: "x"', "table: hr.rows")
        record = server.wait_for_end(server.submit(text, ada, team="research", directory=server.home.path("out")))
        self.assertEqual(record["state"], "succeeded", record)
        seen = collections.Counter()
        for i in range(3):
            with open(server.home.path("out", f"worker-{i}-0"), encoding="ascii") as f:
                seen.update(int(line) for line in f)
        self.assertEqual(seen, collections.Counter(range(400)))


if __name__ == "__main__":
    unittest.main()
