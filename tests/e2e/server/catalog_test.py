"""The catalogue: grants of columns and rows, refusals, the gate of a job, and lineage. A value in a column that was not granted is a
canary, which is searched for in the memory of all tasks, in files and in output; the same search finds it where it is granted."""
import collections
import glob
import hashlib
import json
import os
import random
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import Server  # noqa: E402  pylint: disable=wrong-import-position
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PATIENCE, poll_until as poll  # noqa: E402  pylint: disable=wrong-import-position
from parquet_file import parquet  # noqa: E402  pylint: disable=wrong-import-position

CANARY = b"canary-7d2c-ada@example.org"
ROWS = 3000
# Reads its data set into memory, says so, and does it again for each line of a file, until the file says stop.
PROGRAM = """\
import hashlib, os, shutil, subprocess, sys, time
shoal, orders, name = sys.argv[1:4]
done = 0
part = "part-" + os.environ["SHOAL_TASK"].split("/")[1]
while True:
    lines = open(orders).read().split() if os.path.exists(orders) else []
    if "stop" in lines:
        break
    if done > len(lines):
        time.sleep(0.05)
        continue
    shutil.rmtree(part, ignore_errors=True)
    copied = subprocess.run([shoal, "data", "copy", f"gate://{name}/*", part + "/"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if copied.returncode != 0:
        print("refused", copied.stderr.decode().strip(), flush=True)
    else:
        held = b"".join(open(os.path.join(part, f), "rb").read() for f in sorted(os.listdir(part)))
        print("read", len(held), hashlib.sha256(held).hexdigest(), flush=True)
    done += 1
"""
GENERIC = """\
name: reader
data: {train: {table: hr.people, columns: %s}}
roles:
  worker: {replicas: 2, command: [python3, -B, %s, %s, %s, train]}
"""
TRAINER = """\
name: people
framework: shoal
learn: {algorithm: logistic, epochs: 3, label: label}
data: {train: {table: hr.people, columns: [label, age, city]}}
outputs: {model: %s}
roles: {worker: 2, server: 1}
"""


def poll_until(condition, seconds=60):
    return poll(condition, seconds * PATIENCE)


def people(rows=ROWS):
    chosen = random.Random(7)
    lines = ["label,email,age,city"]
    for i in range(rows):
        email = CANARY.decode() if i == rows // 2 else f"user{i}@example.org"
        age = chosen.randrange(90)
        lines.append(f"{int(age > 40)},{email},{age},{chosen.choice(['Oslo', 'Rome', 'Bonn'])}")
    return "\n".join(lines) + "\n"


def tasks_of(home):
    """Processes that carry a task of a job in their environment."""
    found = []
    for process in home.processes():
        try:
            with open(f"/proc/{process.pid}/environ", "rb") as f:
                if b"SHOAL_TASK=" in f.read():
                    found.append(process.pid)
        except OSError:
            pass
    return found


def memory_holds(pid, value):
    try:
        with open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                place, rights = line.split()[:2]
                if not rights.startswith("r") or "[v" in line:
                    continue
                begin, end = (int(x, 16) for x in place.split("-"))
                try:
                    memory.seek(begin)
                    if value in memory.read(end - begin):
                        return True
                except (OSError, OverflowError, ValueError):
                    continue
    except OSError:
        pass
    return False


def files_with(root, value):
    found = []
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                with open(os.path.join(folder, name), "rb") as f:
                    if value in f.read():
                        found.append(os.path.join(folder, name))
            except OSError:
                pass
    return found


def gates():
    """Gates of all servers of this machine that this process has started, by parent."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                words = f.read().split(b"\0")
            with open(os.path.dirname(path) + "/stat", encoding="ascii", errors="replace") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            continue
        if len(words) >= 2 and words[1] == b"gate":
            found[int(path.split("/")[2])] = parent
    return found


class CatalogTest(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.__exit__)
        self.server.start()
        self.kim = self.server.make_user("kim", "hr", "operator")
        self.ada = self.server.make_user("ada", "research", "member")
        self.bob = self.server.make_user("bob", "research", "member")
        self.folder = self.server.home.path("data")
        os.mkdir(self.folder)
        self.text = people()
        self.server.home.write("data/people.csv", self.text)
        self.shoal("catalog", "create", "database", "hr", "--team", "hr", "--location", self.folder + "/")
        self.shoal("catalog", "create", "table", "hr.people", "--source", os.path.join(self.folder, "*.csv"), token=self.kim)

    def shoal(self, *words, token="", code=0):
        done = self.server.shoal(*words, token=token)
        self.assertEqual(done[0], code, done)
        return done[1] + done[2]

    def gate_pids(self):
        return [pid for pid, parent in gates().items() if parent == self.server.process.pid]

    def start_reader(self, columns, token, table="hr.people"):
        program = self.server.home.write("reader.py", PROGRAM)
        self.orders = self.server.home.path("orders")
        with open(self.orders, "w", encoding="ascii"):
            pass
        text = GENERIC % (columns, program, self.server.home.binary, self.orders)
        text = text.replace("hr.people", table)
        return self.server.submit(text, token, directory=self.server.home.path("tmp"), team="research")

    def order(self, word):
        with open(self.orders, "a", encoding="ascii") as f:
            f.write(word + "\n")

    def lines(self, job, index=0):
        reply = self.server.get(f"/jobs/{job}/logs/worker-{index}/0")
        return reply.body.decode().splitlines() if reply.status == 200 else []

    def wait_lines(self, job, count):
        both = lambda: all(len(self.lines(job, i)) >= count for i in (0, 1))  # noqa: E731
        self.assertTrue(poll_until(both), (self.lines(job), self.server.get(f"/jobs/{job}").json))
        return self.lines(job, 0), self.lines(job, 1)

    def test_tables_are_made_shown_and_dropped(self):
        shown = self.shoal("catalog", "show", "hr.people", token=self.kim)
        self.assertIn("  email  text", shown)
        self.assertIn("  age  integer", shown)
        self.assertIn("hr.people", self.shoal("catalog", "ls"))
        with self.subTest("strangers see nothing"):
            self.assertIn("there is no table", self.shoal("catalog", "show", "hr.people", token=self.ada, code=4))
            self.assertNotIn("hr.people", self.shoal("catalog", "ls", token=self.ada))
        with self.subTest("sources lie in the locations"):
            refused = self.shoal("catalog", "create", "table", "hr.shadow", "--source", "/etc/shadow", "--format", "text",
                                 token=self.kim, code=2)
            self.assertIn("below a location of the database hr", refused)
            refused = self.shoal("catalog", "create", "table", "hr.up", "--source", self.folder + "/../state/x", "--format", "text",
                                 token=self.kim, code=2)
            self.assertIn("below a location of the database hr", refused)
        with self.subTest("only those who manage it change it"):
            self.shoal("catalog", "grant", "hr.people", "--to", "user:ada", "--columns", "age", token=self.kim)
            refused = self.shoal("catalog", "grant", "hr.people", "--to", "user:ada", token=self.ada, code=3)
            self.assertIn("is managed by its owner kim", refused)
            shown = self.shoal("catalog", "show", "hr.people", token=self.ada)
            self.assertNotIn("sources", shown)
        with self.subTest("conditions are checked when they are given"):
            refused = self.shoal("catalog", "grant", "hr.people", "--to", "user:ada", "--rows", "age > 'x'", token=self.kim, code=2)
            self.assertIn("rows: column 7: got x, expected a number: column age has the type integer", refused)
        with self.subTest("changes are in the audit log"):
            actions = {e["action"] for e in self.server.get("/audit?limit=1000").json["items"]}
            self.assertLessEqual({"setDatabase", "createTable", "createGrant"}, actions)
        self.shoal("catalog", "drop", "hr.people", token=self.kim)
        self.assertIn("database hr is removed", self.shoal("catalog", "drop", "hr"))

    def test_a_job_is_refused_with_the_column_and_the_grant(self):
        self.shoal("catalog", "grant", "hr.people", "--to", "team:research", "--columns", "label,age", token=self.kim)
        model = self.server.home.path("model")
        reply = self.server.post("/jobs", {"file": TRAINER % model, "team": "research"}, self.ada)
        self.assertEqual(reply.status, 403, reply)
        self.assertIn("data.train.columns: column city of hr.people for ada (teams: research): there is no grant; its owner kim "
                      "gives it: `shoal catalog grant hr.people --to user:ada --columns city`", reply.detail)
        with self.subTest("the variable and the secret of gates are the server's"):
            for text in ("env: {X: {secret: shoal-gate.00}}\n", "env: {SHOAL_GATE: x}\n"):
                reply = self.server.post("/jobs", {"file": GENERIC % ("[age]", "x", "x", "x") + text, "team": "research"}, self.ada)
                self.assertEqual(reply.status, 422, reply)

    def test_an_owner_reads_the_sources_directly(self):
        model = self.server.home.path("model")
        self.server.request("PUT", "/teams/research/members/kim", {"role": "member"})
        text = (TRAINER % model).replace(", columns: [label, age, city]", "")
        job = self.server.submit(text, self.kim, team="research")
        record = self.server.wait_for_end(job)
        self.assertEqual(record["state"], "succeeded", record)
        with open(os.path.join(self.server.state, "jobs", job, "job.json"), encoding="utf-8") as f:
            self.assertIn(os.path.join(self.folder, "people.csv"), f.read())
        found = self.server.get("/lineage?column=hr.people.email", self.kim).json["items"]
        self.assertEqual([r["job"] for r in found], [job])
        self.assertFalse(found[0]["tables"][0]["gated"])

    def test_trainers_read_through_the_gate(self):
        self.shoal("catalog", "grant", "hr.people", "--to", "team:research", "--columns", "label,age,city", "--rows",
                   "city != 'Rome'", token=self.kim)
        model = self.server.home.path("model")
        job = self.server.submit(TRAINER % model, self.ada, team="research")
        seen = set()
        poll_until(lambda: seen.update(self.found_in_tasks(CANARY)) or self.server.state_of(job) in ("succeeded", "failed"))
        record = self.server.wait_for_end(job)
        self.assertEqual(record["state"], "succeeded", record)
        self.assertEqual(seen, set())
        with open(os.path.join(model, "model.json"), encoding="utf-8") as f:
            text = f.read()
        self.assertNotIn("email", text)
        expected = sum(",Rome" not in line for line in self.text.splitlines()[1:])
        self.assertIn(str(expected), json.dumps(self.server.get(f"/jobs/{job}").json) + text)
        self.assertTrue(poll_until(lambda: not self.gate_pids()))
        with self.subTest("lineage"):
            shown = self.shoal("lineage", model, token=self.ada)
            self.assertIn(f"{job}  ", shown)
            self.assertIn("train: hr.people (label, age, city) where city != 'Rome'", shown)
            self.assertIn(os.path.join(self.folder, "people.csv"), shown)
            self.assertIn(job, self.shoal("lineage", "--column", "hr.people.age", token=self.kim))
            self.assertNotIn(job, self.shoal("lineage", "--column", "hr.people.email", token=self.kim))
            stranger = self.server.make_user("eve", "other")
            self.assertNotIn(job, self.shoal("lineage", job, token=stranger))

    def found_in_tasks(self, value):
        return [pid for pid in tasks_of(self.server.home) if memory_holds(pid, value)]

    def check_canary(self, columns, found, table="hr.people"):
        job = self.start_reader(columns, self.ada, table)
        first, second = self.wait_lines(job, 1)
        self.assertEqual(first[0].split()[0], "read", first)
        self.assertEqual(first, second)
        tasks = tasks_of(self.server.home)
        self.assertGreaterEqual(len(tasks), 4)  # two launchers and their programs
        holders = self.found_in_tasks(CANARY)
        outside = [f for f in files_with(self.server.home.root, CANARY) if os.path.dirname(f) != self.folder]
        self.order("stop")
        self.server.wait_for_end(job)
        self.assertEqual(bool(holders), found, holders)
        self.assertEqual(bool(outside), found, outside)

    def test_the_canary_is_nowhere(self):
        self.shoal("catalog", "grant", "hr.people", "--to", "user:ada", "--columns", "label,age,city", token=self.kim)
        self.check_canary("[label, age, city]", False)

    def test_a_masked_canary_is_nowhere(self):
        self.shoal("catalog", "grant", "hr.people", "--to", "user:ada", token=self.kim)
        self.shoal("catalog", "tag", "hr.people", "email", "pii", token=self.kim)
        self.shoal("catalog", "tag-policy", "hr", "pii", "hash", "--except", "team:hr", token=self.kim)
        self.assertIn("email (hash)", self.shoal("catalog", "who-can", "hr.people", token=self.kim))
        self.check_canary("[email, age]", False)

    def test_the_canary_is_found_where_it_is_granted(self):
        self.shoal("catalog", "grant", "hr.people", "--to", "user:ada", "--columns", "email,age", token=self.kim)
        self.check_canary("[email, age]", True)

    def make_parquet(self):
        """The same table as Parquet, hr.rows."""
        lines = [line.split(",") for line in self.text.splitlines()]
        columns = {name: [row[i] for row in lines[1:]] for i, name in enumerate(lines[0])}
        for name in ("label", "age"):
            columns[name] = [int(text) for text in columns[name]]
        self.source = os.path.join(self.folder, "people.parquet")
        with open(self.source, "wb") as f:
            f.write(parquet(columns))
        os.remove(os.path.join(self.folder, "people.csv"))
        self.shoal("catalog", "create", "table", "hr.rows", "--source", self.source, token=self.kim)

    def test_the_canary_of_parquet_is_nowhere(self):
        self.make_parquet()
        self.shoal("catalog", "grant", "hr.rows", "--to", "user:ada", "--columns", "label,age,city", "--rows", "age < 50", token=self.kim)
        self.check_canary("[label, age, city]", False, "hr.rows")

    def test_the_canary_of_parquet_is_found_where_it_is_granted(self):
        self.make_parquet()
        self.shoal("catalog", "grant", "hr.rows", "--to", "user:ada", "--columns", "email,age", token=self.kim)
        self.check_canary("[email, age]", True, "hr.rows")

    def test_trainers_read_parquet_through_the_gate(self):
        """The same model as of the same rows in CSV."""
        models = []
        for table in ("hr.people", "hr.rows"):
            if table == "hr.rows":
                self.make_parquet()
            self.shoal("catalog", "grant", table, "--to", "team:research", "--columns", "label,age,city", "--rows", "city != 'Rome'",
                       token=self.kim)
            models.append(self.server.home.path("model-" + table))
            text = (TRAINER % models[-1]).replace("hr.people", table).replace("worker: 2", "worker: 1")
            job = self.server.submit(text.replace("epochs: 3", "epochs: 3, deterministic: true"), self.ada, team="research")
            record = self.server.wait_for_end(job)
            self.assertEqual(record["state"], "succeeded", record)
        weights = [open(os.path.join(model, "weights.bin"), "rb").read() for model in models]  # noqa: SIM115
        self.assertEqual(weights[0], weights[1])

    def test_a_killed_gate_gives_the_same_records(self):
        self.shoal("catalog", "grant", "hr.people", "--to", "user:ada", "--columns", "age,city", "--rows", "age < 50", token=self.kim)
        job = self.start_reader("[age, city]", self.ada)
        self.wait_lines(job, 1)
        for round_ in range(1, 6):
            before = self.gate_pids()
            self.assertEqual(len(before), 1)
            os.kill(before[0], signal.SIGKILL)
            self.order("again")
            first, second = self.wait_lines(job, 1 + round_)
            self.assertNotEqual(self.gate_pids(), before)
        self.order("stop")
        record = self.server.wait_for_end(job)
        self.assertEqual(record["state"], "succeeded", record)
        cells = (line.split(",") for line in self.text.splitlines()[1:])
        wanted = "age,city\n" + "".join(f"{age},{city}\n" for _, _, age, city in cells if int(age) < 50)
        line = f"read {len(wanted)} {hashlib.sha256(wanted.encode()).hexdigest()}"
        self.assertEqual(collections.Counter(first + second), {line: 12})

    def test_a_revoked_grant_ends_the_reading(self):
        made = self.server.post("/catalog/tables/hr.people/grants", {"to": "user:ada", "columns": ["age"]}, self.kim).json
        job = self.start_reader("[age]", self.ada)
        self.wait_lines(job, 1)
        before = self.gate_pids()
        self.shoal("catalog", "revoke", "hr.people", made["id"], token=self.kim)
        self.assertTrue(poll_until(lambda: self.gate_pids() not in ([], before)))
        self.order("again")
        first, _ = self.wait_lines(job, 2)
        self.assertIn("column age of hr.people for ada (teams: research): there is no grant", first[1])
        self.order("stop")
        self.server.wait_for_end(job)

    def test_a_restarted_server_starts_the_gates_again(self):
        self.shoal("catalog", "grant", "hr.people", "--to", "user:ada", "--columns", "age", token=self.kim)
        job = self.start_reader("[age]", self.ada)
        self.wait_lines(job, 1)
        self.server.kill()
        self.server.start()
        self.order("again")
        first, second = self.wait_lines(job, 2)
        self.assertEqual(len(set(first + second)), 1, first + second)
        self.order("stop")
        self.assertEqual(self.server.wait_for_end(job)["state"], "succeeded")
        self.assertTrue(poll_until(lambda: not self.gate_pids()))


if __name__ == "__main__":
    unittest.main()
