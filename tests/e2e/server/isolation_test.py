"""Tasks of the local engine run as the user of their team: what a hostile task can reach, and what a server that is root
is made to do by a user who puts links in the place of files."""
import json
import os
import re
import signal
import stat
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import Server, job_text, poll_until, said  # noqa: E402  pylint: disable=wrong-import-position

RED, BLUE = 61101, 61102  # without entries among the machine's users
MARK = "canary-5d0c"

# What a task of the team red tries. Prints one JSON object: what each attempt got.
HOSTILE = textwrap.dedent('''
    import ctypes, json, os, sys
    state, blue_job, secret = sys.argv[1:4]
    got = {"ids": [os.getresuid(), os.getresgid(), os.getgroups()]}

    def attempt(name, what):
        try:
            got[name] = what()
        except OSError as e:
            got[name] = "refused: " + e.strerror

    def readable(root):
        found = []
        for top, _, names in os.walk(root):
            for name in names:
                try:
                    with open(os.path.join(top, name), "rb") as f:
                        f.read(1)
                    found.append(os.path.join(top, name))
                except OSError:
                    pass
        return found

    for name in ("shoal.db", "administrator.token", "secrets.key"):
        attempt(name, lambda name=name: open(os.path.join(state, name), "rb").read(10) and "read")
    attempt("state", lambda: os.listdir(state))
    attempt("jobs", lambda: os.listdir(os.path.join(state, "jobs")))
    attempt("blue", lambda: os.listdir(os.path.join(state, "jobs", blue_job)))
    for name in ("job.json", "token", "secrets", "logs/worker-0.0.log", "outputs/worker-0.0/model", "journal",
                 "engine/tasks.json"):
        attempt("blue " + name, lambda name=name: open(os.path.join(state, "jobs", blue_job, name), "rb").read())
    attempt("work of blue", lambda: os.listdir(os.path.join(state, "work", "blue+61102")))
    attempt("uploads", lambda: os.listdir(os.path.join(state, "uploads")))
    attempt("cache", lambda: os.listdir(os.path.join(state, "cache")))
    attempt("root's file", lambda: open(secret).read())
    got["readable"] = readable(state)
    attempt("setuid", lambda: os.setresuid(0, 0, 0))
    attempt("chown", lambda: os.chown(os.environ["SHOAL_JOB_DIR"], 0, 0))
    status = dict(line.rstrip().split(":", 1) for line in open("/proc/self/status") if ":" in line)
    got["no_new_privs"] = status["NoNewPrivs"].strip()
    got["capabilities"] = int(status["CapEff"], 16) if os.environ.get("SHOAL_ISOLATION") == "guard" else 0
    environment = {}
    for pid in (p for p in os.listdir("/proc") if p.isdigit()):
        try:
            environment[pid] = open("/proc/%s/environ" % pid, "rb").read().decode(errors="replace")
        except OSError:
            pass
    got["of blue"] = [pid for pid, text in environment.items() if blue_job in text and "SHOAL_JOB_ID=" + blue_job in text]
    got["home"] = os.environ["HOME"]
    got["own files"] = open(os.path.join(os.environ["SHOAL_JOB_DIR"], "token")).read() != ""
    print(json.dumps(got))
''')


@unittest.skipUnless(os.geteuid() == 0, "needs root, to run tasks as other users")
class IsolationTest(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.__exit__)
        os.chmod(self.server.home.path(""), 0o711)
        self.server.start()
        self.red = self.server.make_user("mia", "red", "member")
        self.blue = self.server.make_user("otto", "blue", "member")
        self.put("red", {"user": f"{RED}:{RED}", "isolated": True})
        self.put("blue", {"user": str(BLUE)})

    def put(self, team, policy, status=200):
        reply = self.server.request("PUT", f"/teams/{team}/policy", policy)
        self.assertEqual(reply.status, status, reply)
        return reply

    def job_dir(self, job):
        return os.path.join(self.server.state, "jobs", job)

    def log(self, job, task="worker-0", token=""):
        return self.server.get(f"/jobs/{job}/logs/{task}/0", token).body.decode()

    def program(self, text, name="program.py"):
        path = self.server.home.path(name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o644)
        return path

    def end(self, job, state="succeeded"):
        record = self.server.wait_for_end(job)
        self.assertEqual(record["state"], state, record)
        return record

    def root_file(self):
        path = self.server.home.path("root-only")
        with open(path, "w", encoding="utf-8") as f:
            f.write(MARK)
        os.chmod(path, 0o600)
        return path

    def test_tasks_run_as_the_team_and_a_job_goes_the_whole_way(self):
        job = self.server.submit(job_text(script="id -u; id -g; id -G; echo model > $SHOAL_OUTPUT/model; sleep 0.2"), self.red)
        self.end(job)
        self.assertEqual(self.log(job).split(), [str(RED)] * 3)
        reply = self.server.get(f"/jobs/{job}/outputs/worker-0/0?path=model", self.red)
        self.assertEqual(reply.body, b"model\n", reply)
        info = os.stat(self.job_dir(job))
        self.assertEqual((info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)), (RED, RED, 0o700))
        for top, names, files in os.walk(self.job_dir(job)):
            for name in names + files:
                self.assertEqual(os.lstat(os.path.join(top, name)).st_uid, RED, os.path.join(top, name))
        self.assertEqual(self.server.request("DELETE", f"/jobs/{job}", None, self.red).status, 204)
        self.assertFalse(os.path.exists(self.job_dir(job)))

    def test_every_process_of_a_job_is_the_team(self):
        job = self.server.submit(job_text(script="echo up; sleep 1000"), self.red)
        self.server.wait_for(job, ("running",))
        poll_until(lambda: "up" in self.log(job), 30)
        users = set()
        for pid in (p for p in os.listdir("/proc") if p.isdigit()):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    mine = f"SHOAL_JOB_ID={job}".encode() in f.read()
                if mine:
                    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
                        text = f.read()
                    users.add(tuple(line for line in text.splitlines() if line.startswith(("Uid:", "Gid:", "Groups:", "NoNewPrivs:"))))
            except OSError:
                pass
        self.assertEqual(len(users), 1, users)
        self.assertEqual([line.split()[1:] for line in users.pop()],
                         [[str(RED)] * 4, [str(RED)] * 4, [str(RED)], ["1"]])
        self.server.post(f"/jobs/{job}/stop", {"now": True}, self.red)
        self.end(job, "cancelled")

    def test_a_hostile_task_reads_nothing(self):
        self.server.request("PUT", "/teams/blue/secrets/key", {"value": MARK}, self.server.admin)
        blue = self.server.submit(
            "name: blue\nenv: {KEY: {secret: key}}\nroles:\n  worker: {replicas: 1, command: [sh, -c, "
            '"echo private; echo model > $SHOAL_OUTPUT/model; sleep 1000"]}\n', self.blue)
        self.server.wait_for(blue, ("running",))
        poll_until(lambda: "private" in self.log(blue), 30)
        program = self.program(HOSTILE)
        red = self.server.submit(
            f"name: red\nroles:\n  worker: {{replicas: 1, command: [python3, {program}, {self.server.state}, {blue}, "
            f"{self.root_file()}]}}\n", self.red)
        self.end(red)
        got = json.loads(self.log(red).splitlines()[-1])
        self.assertEqual(got.pop("ids"), [[RED] * 3, [RED] * 3, [RED]])
        self.assertEqual(got.pop("no_new_privs"), "1")
        self.assertEqual(got.pop("home"), self.job_dir(red))
        self.assertIs(got.pop("own files"), True)
        self.assertEqual(got.pop("of blue"), [])
        self.assertEqual(got.pop("capabilities"), 0)
        self.assertEqual(got.pop("readable"), [])
        for name, what in got.items():
            self.assertTrue(str(what).startswith("refused:"), (name, what))
        self.server.post(f"/jobs/{blue}/stop", {"now": True}, self.blue)
        self.end(blue, "cancelled")

    def test_links_in_the_place_of_files(self):
        """A user of the machine changes its job's directory while the server reads, writes and removes there."""
        target = self.root_file()
        victim = self.server.home.path("victim")
        os.mkdir(victim, 0o700)
        with open(os.path.join(victim, "kept"), "w", encoding="utf-8") as f:
            f.write("x")
        plant = self.program(textwrap.dedent(f'''
            import os, shutil
            job, target, victim = os.environ["SHOAL_JOB_DIR"], {target!r}, {victim!r}
            out = os.environ["SHOAL_OUTPUT"]
            os.symlink(target, out + "/link")
            os.symlink(victim, out + "/directory")
            os.mkfifo(out + "/fifo")
            os.symlink(target, job + "/logs/worker-7.0.log")
            os.mkfifo(job + "/logs/worker-8.0.log")
            os.symlink("/proc/self/maps", job + "/logs/worker-9.0.log")
            shutil.rmtree(job + "/series", ignore_errors=True)
            os.symlink(victim, job + "/series")
            os.symlink(victim, job + "/files")
            for name in ("resumes", "secrets", "clearing"):
                os.symlink(victim + "/" + name, job + "/" + name)
            print("planted", flush=True)
        '''))
        job = self.server.submit(
            f"name: links\nroles:\n  worker: {{replicas: 1, command: [sh, -c, 'python3 {plant}; "
            "for i in 1 2 3 4 5 6 7 8; do echo shoal.metric loss=$i step=$i; sleep 0.2; done']}\n", self.red)
        self.end(job)
        self.assertIn("planted", self.log(job))
        for path in ("link", "directory/kept", "fifo"):
            reply = self.server.get(f"/jobs/{job}/outputs/worker-0/0?path={path}", self.red)
            self.assertIn(reply.status, (403, 404), (path, reply))
        for index in (7, 8, 9):
            reply = self.server.get(f"/jobs/{job}/logs/worker-{index}/0", self.red)
            self.assertNotIn(reply.status, (200, 500), (index, reply))
            self.assertNotIn(MARK.encode(), reply.body)
        reply = self.server.post("/logs/search", {"grep": "."}, self.red)
        self.assertNotIn(MARK.encode(), reply.body)
        self.assertNotIn(b"r-xp", reply.body)
        backup = self.server.home.path("backup")
        code, _, err = self.server.home.run("server", "backup", backup, "--state", self.server.state)
        self.assertEqual(code, 0, err)
        self.assertEqual(subprocess.run(["grep", "-r", MARK, backup], capture_output=True, check=False).stdout, b"")
        self.assertEqual(os.listdir(victim), ["kept"])
        self.assertEqual(self.server.request("DELETE", f"/jobs/{job}", None, self.red).status, 204)
        self.assertFalse(os.path.exists(self.job_dir(job)))
        self.assertEqual(os.listdir(victim), ["kept"])

    def test_logs_are_compressed_and_removed_with_the_rights_of_the_user(self):
        target = self.root_file()
        with open(target, "a", encoding="utf-8") as f:
            f.write("private " * 20_000)
        with open(target, encoding="utf-8") as f:
            private = f.read()
        plant = self.program(textwrap.dedent(f'''
            import os
            logs = os.environ["SHOAL_JOB_DIR"] + "/logs/"
            for name in ("worker-7.0.log", "worker-0.0.log.zst.new", "removed.json"):
                os.symlink({target!r}, logs + name)
            print("planted " * 20_000, flush=True)
        '''))
        job = self.server.submit(f"name: logs\nroles:\n  worker: {{replicas: 1, command: [python3, {plant}]}}\n", self.red)
        self.end(job)

        def metric(name):
            text = self.server.get("/metrics").body.decode()
            return float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])

        # The planted links cost the team the compression of its logs, and nothing else.
        self.assertTrue(poll_until(lambda: metric("shoal_logs_failures_total") >= 2, 30))
        self.assertEqual(metric("shoal_logs_compressed_total"), 0)
        self.assertEqual([name for name in os.listdir(os.path.join(self.job_dir(job), "logs")) if name.endswith(".zst")], [])
        self.assertIn("planted", self.log(job))
        self.put("red", {"user": f"{RED}:{RED}", "isolated": True, "log_bytes": 0})
        other = self.server.submit(job_text(script="true"), self.red)  # its end applies the limits
        self.end(other)
        self.assertTrue(poll_until(lambda: "worker-0.0.log" not in os.listdir(os.path.join(self.job_dir(job), "logs")), 30))
        with open(target, encoding="utf-8") as f:
            self.assertEqual(f.read(), private)

    def test_a_file_of_terabytes_among_the_logs_stops_nobody_else(self):
        job = self.server.submit(job_text(script="truncate -s 4T $SHOAL_JOB_DIR/logs/worker-7.0.log; touch "
                                                 "$SHOAL_OUTPUT/$(printf 'caf\\\\351')"), self.red)
        self.end(job)
        other = self.server.submit(job_text(script="echo other"), self.blue)
        self.end(other)
        self.assertEqual(self.log(other), "other\n")
        names = [item["path"] for item in self.server.get(f"/jobs/{job}/outputs", self.red).json["items"]]
        self.assertEqual(names, ["caf\ufffd"] * 2)
        backup = self.server.home.path("backup")
        code, _, err = self.server.home.run("server", "backup", backup, "--state", self.server.state)
        self.assertEqual(code, 0, err)
        self.assertLess(os.stat(os.path.join(backup, "jobs", job, "logs", "worker-7.0.log")).st_blocks, 10_000)
        self.assertEqual(self.server.request("DELETE", f"/jobs/{job}", None, self.red).status, 204)

    def test_odd_names_among_logs_and_outputs_hide_nothing_else(self):
        """`shoal logs` and `shoal outputs --to` over the server: the files with usual names, and a sentence about the others."""
        plant = r"""cd $SHOAL_JOB_DIR/logs; for name in 'a b' 'x%2Fy' "$(printf 'caf\351')" "$(printf 'l\nf')"; do
          echo planted > "$name-0.0.log"; done; cd $SHOAL_OUTPUT; echo good > model; echo odd > "$(printf 'caf\351')"; echo output"""
        job = self.server.submit("name: odd\nroles:\n  worker:\n    replicas: 1\n    command: [sh, -c, " + json.dumps(plant) + "]\n",
                                 self.red)
        self.end(job)
        access = {"env": {"SHOAL_SERVER": self.server.url, "SHOAL_TOKEN": self.server.admin}}
        code, out, err = self.server.home.run("logs", job, **access)
        self.assertEqual((code, "output" in out, "planted" in out), (0, True, False), out + err)
        copied = self.server.home.path("copied")
        code, out, err = self.server.home.run("outputs", job, "--to", copied, **access)
        self.assertNotEqual(code, 0, out + err)
        self.assertIn("1 of 2 files could not be copied", err)
        self.assertIn("not UTF-8", err)
        with open(os.path.join(copied, "worker-0.0", "model"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "good\n")

    def test_a_state_directory_of_another_user_is_refused(self):
        state = self.server.home.path("theirs")
        os.mkdir(state)
        os.chown(state, RED, RED)
        code, _, err = self.server.home.run("server", "--state", state, "--listen", "127.0.0.1:0")
        self.assertNotEqual(code, 0)
        self.assertIn(f"{state} belongs to user {RED}", err)
        self.assertIn("chown root", err)
        self.assertEqual(os.listdir(state), [])

    def test_forged_records_kill_nobody(self):
        """After a restart the server takes a job over by records that its user may have written."""
        victim = subprocess.Popen(["sleep", "1000"], env={"SHOAL_JOB_ID": "x"})  # of root
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        with open(f"/proc/{victim.pid}/stat", encoding="utf-8") as f:
            ticks = int(f.read().rsplit(")", 1)[1].split()[19])
        job = self.server.submit(job_text(script="echo up; sleep 1000"), self.red)
        self.server.wait_for(job, ("running",))
        poll_until(lambda: "up" in self.log(job), 30)
        self.server.kill()
        records = os.path.join(self.job_dir(job), "engine", "tasks.json")
        with open(records, encoding="utf-8") as f:
            text = json.load(f)
        text["group_bases"] = ["/sys/fs/cgroup", self.job_dir(job)]
        forged = dict(text["tasks"][-1], index=7, pid=victim.pid, start_ticks=ticks)
        text["tasks"].append(forged)
        with open(records, "w", encoding="utf-8") as f:
            json.dump(text, f)
        as_coordinator = subprocess.Popen(  # of another team, which claims to be the job's
            ["setpriv", f"--reuid={BLUE}", f"--regid={BLUE}", "--clear-groups", "sleep", "1000"],
            env={"PATH": os.environ["PATH"], "SHOAL_JOB_ID": job, "SHOAL_TASK": "worker/9/0"})
        self.addCleanup(as_coordinator.wait)
        self.addCleanup(as_coordinator.kill)
        self.server.start()
        self.assertEqual(self.server.state_of(job), "running")
        self.server.post(f"/jobs/{job}/stop", {"now": True}, self.red)
        self.end(job, "cancelled")
        self.assertIsNone(victim.poll())

    def test_policies(self):
        with self.subTest("a policy that asks for isolation and names no user"):
            self.put("red", {"isolated": True})
            reply = self.server.post("/jobs", {"file": job_text()}, self.red)
            self.assertEqual(reply.status, 403, reply)
            self.assertIn("the policy names no user", reply.detail)
        with self.subTest("users that are refused"):
            for user in ("root", "0", "0:0", "5:0", "no-such-user", "-1", "4294967295"):
                self.put("red", {"user": user}, 422)
        with self.subTest("only administrators set it"):
            self.assertEqual(self.server.request("PUT", "/teams/red/policy", {"user": "1:1"}, self.red).status, 403)
        with self.subTest("another user from now on"):
            self.put("red", {"user": "61103"})
            job = self.server.submit(job_text(script="id -u"), self.red)
            self.end(job)
            self.assertEqual(self.log(job).split(), ["61103"])
            self.assertEqual(self.server.get(f"/jobs/{job}", self.red).json["labels"]["shoal.user"], "61103:61103")

    def test_a_submission_tells_nothing_of_files_that_the_team_cannot_read(self):
        secret = self.server.home.path("closed")
        os.mkdir(secret, 0o700)
        with open(os.path.join(secret, "train.libsvm"), "w", encoding="utf-8") as f:
            f.write(MARK + "\n")
        text = f"learn: {{algorithm: logistic, data: {secret}/train.libsvm, output: /tmp/never}}\nroles: {{worker: 1}}\n"
        for target in ("/jobs", "/plan"):
            reply = self.server.post(target, {"file": text}, self.red)
            self.assertNotEqual(reply.status, 201, reply)
            self.assertNotIn(MARK.encode(), reply.body)

    def test_a_suspended_job_keeps_its_user_over_backup_and_restore(self):
        job = self.server.submit(job_text(script="id -u; test -e $SHOAL_JOB_DIR/resumes || sleep 1000"), self.red)
        self.server.wait_for(job, ("running",))
        poll_until(lambda: str(RED) in self.log(job), 30)
        self.server.post(f"/jobs/{job}/suspend", {}, self.red)
        self.assertEqual(self.server.wait_for(job, ("suspended",))["state"], "suspended")
        backup, restored = self.server.home.path("backup"), self.server.home.path("restored")
        self.assertEqual(self.server.home.run("server", "backup", backup, "--state", self.server.state)[0], 0)
        self.assertEqual(self.server.home.run("server", "restore", backup, "--state", restored)[0], 0)
        self.server.stop()
        self.server.state = restored
        self.server.start()
        self.server.post(f"/jobs/{job}/resume", {}, self.red)
        self.end(job)
        self.assertEqual(set(self.log(job).split()) | set(self.server.get(f"/jobs/{job}/logs/worker-0/1").body.decode().split()),
                         {str(RED)})

    def test_files_reach_a_job_of_another_user(self):
        project = self.server.home.path("project")
        os.mkdir(project)
        with open(os.path.join(project, "data.txt"), "w", encoding="utf-8") as f:
            f.write("x" * 3_000_000)
        with open(os.path.join(project, "job.yaml"), "w", encoding="utf-8") as f:
            f.write("name: staged\nfiles: .\nroles:\n  worker: {replicas: 1, command: [sh, -c, 'id -u; wc -c < data.txt']}\n")
        code, out, err = self.server.shoal("run", os.path.join(project, "job.yaml"), token=self.red)
        self.assertEqual(code, 0, out + err)
        job = self.server.get("/jobs", self.red).json["items"][0]["id"]
        self.assertEqual(self.log(job).split(), [str(RED), "3000000"])

    def test_a_server_that_is_not_root_says_so_and_refuses(self):
        self.server.stop()
        state = self.server.home.path("state-of-a-user")
        os.mkdir(state, 0o700)
        os.chown(state, RED, RED)
        process = subprocess.Popen(
            ["setpriv", f"--reuid={RED}", f"--regid={RED}", "--clear-groups", os.environ["SHOAL_BIN"], "server", "--state",
             state, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={"PATH": os.environ["PATH"], "HOME": state})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.send_signal, signal.SIGKILL)
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "tasks of the engines local and slurm run as this server's user" in line:
                break
        self.assertTrue(any("ready on" in line for line in lines), lines)
        url = next(line for line in lines if "ready on" in line).split()[2].rstrip(",")
        self.server.port = int(url.rsplit(":", 1)[1])
        self.server.state = state
        self.server.post("/teams", {"name": "red"})
        self.put("red", {"user": "61103"})
        reply = self.server.post("/jobs", {"file": job_text(), "team": "red"})
        self.assertEqual(reply.status, 409, reply)
        self.assertIn("only a server that runs as root can do", reply.detail)


if __name__ == "__main__":
    unittest.main()
