"""`import shoal`: the client against a real server with real jobs, over restarts of the server, wrong tokens and Ctrl-C."""
import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

SOURCE = os.environ.get("SHOAL_SOURCE") or os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
sys.path[:0] = [os.path.join(SOURCE, "python"), os.path.join(SOURCE, "tests", "e2e", "server")]
from server_harness import PATIENCE, Server, job_text, poll_until  # noqa: E402  pylint: disable=wrong-import-position
import shoal  # noqa: E402  pylint: disable=wrong-import-position

try:
    import cloudpickle
except ImportError:
    cloudpickle = None

LINES = 150
COUNT = f"i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo line $i; sleep 0.02; done"
SLEEPER = job_text("sleeper", "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done")


def counted(lines):
    return [line.text for line in lines if line.task == "worker-0"], [f"line {i}" for i in range(1, LINES + 1)]


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.server = Server(options=self.options)
        self.addCleanup(self.server.__exit__)
        self.server.start()
        self.client = self.connect()
        self.addCleanup(self.client.close)

    options = ()

    def connect(self, **options):
        return shoal.Client(self.server.url, self.server.admin, patience=60 * PATIENCE, **options)

    def file(self, text=job_text(), name="job.yaml"):
        return self.server.home.write(name, text)

    def test_groups(self):
        text = "name: grid\ncommand: [sh, -c, 'echo shoal.metric {\\\"loss\\\": {{matrix.n}}}']\n" \
               "sweep: {objective: loss, search: grid, parameters: {n: [3, 1, 2]}}\n" \
               "---\nname: last\ncommand: ['true']\nafter: grid\n"
        group, last = self.client.submit_all(self.file(text))
        self.assertIsInstance(group, shoal.Group)
        self.assertEqual(group.wait(60 * PATIENCE, check=True)["counts"], {"succeeded": 3})
        self.assertEqual(last.wait(60 * PATIENCE, check=True).state, "succeeded")
        self.assertEqual((group.best()["index"], group.best()["values"], group.best()["objective"]), (1, {"n": "1"}, 1))
        self.assertEqual(group.job(2).state, "succeeded")
        self.assertEqual([one.id for one in self.client.groups()], [group.id])
        self.assertEqual(self.client.group("grid").state, "succeeded")
        group.remove()
        with self.assertRaises(shoal.NotFoundError):
            self.client.group(group.id)
        (sleeping,) = self.client.submit_all({"name": "sleeping", "command": ["sleep", "1000"], "matrix": {"n": [1, 2], "limit": 1}})
        with self.assertRaises(TimeoutError):
            sleeping.wait(0)
        sleeping.stop(now=True)
        with self.assertRaises(shoal.JobFailedError):
            sleeping.wait(60 * PATIENCE, check=True)

    def test_submit_wait_logs_events(self):
        job = self.client.submit(self.file(), set={"roles.worker.replicas": 3}, name="three")
        self.assertEqual(job.wait(60 * PATIENCE, check=True).state, "succeeded")
        self.assertEqual((job.name, job.state, job.record.user, job.record.team), ("three", "succeeded", "admin", "default"))
        self.assertGreater(job.record.ended, job.record.submitted)
        self.assertEqual(sorted((line.task, line.text) for line in job.logs()), [(f"worker-{i}", "hello") for i in range(3)])
        self.assertEqual([line.text for line in job.logs("worker-2", follow=False)], ["hello"])
        self.assertEqual(sorted(task.name for task in job.tasks if task.end["exit_code"] == 0), ["worker-0", "worker-1", "worker-2"])
        followed, listed = list(job.events()), list(job.events(follow=False))
        self.assertEqual(followed, listed)
        self.assertEqual([event.seq for event in listed], list(range(1, len(listed) + 1)))
        self.assertEqual([event.type for event in job.events(follow=False, after=len(listed) - 1)], ["ended"])
        with self.subTest("a job without success"):
            job = self.client.submit({"name": "bad", "roles": {"worker": {"replicas": 1, "command": ["sh", "-c", "exit 3"]}}})
            with self.assertRaisesRegex(shoal.JobFailedError, "exited with 3"):
                job.wait(60 * PATIENCE, check=True)
        with self.subTest("remove"):
            job.remove()
            with self.assertRaises(shoal.NotFoundError):
                job.refresh()

    def test_log_lines_are_exact(self):
        script = r"printf 'a\n\nb\377\nlast'; echo >&2; head -c 200000 /dev/zero | tr '\0' x; echo; printf end"
        path = self.file(json.dumps({"name": "exact", "roles": {"worker": {"replicas": 1, "command": ["sh", "-c", script]}}}), "j.json")
        job = self.client.submit(path)
        lines = list(job.logs())
        self.assertEqual([line.text for line in lines], ["a", "", "b\ufffd", "last", "x" * 200000, "end"])
        self.assertEqual([line.offset for line in lines], [0, 2, 3, 6, 11, 200012])
        self.assertEqual(list(job.logs(follow=False)), lines)
        self.assertEqual([line.text for line in job.logs(tail=2)], ["x" * 200000, "end"])
        self.assertEqual([line.text for line in job.logs(tail=1, follow=False)], ["end"])
        self.assertEqual(list(job.logs(attempt=1)), [])

    def test_a_wrong_job_names_field_and_line(self):
        with self.assertRaises(shoal.ApiError) as caught:
            self.client.submit(self.file("name: a\nrolse: 3\n"))
        error = caught.exception
        self.assertEqual((error.status, error.errors[0].line), (422, 2))
        self.assertIn("did you mean 'roles'", error.detail)
        self.assertEqual(str(error), error.detail)
        for source, words in (({"name": object()}, "no job file can hold"), ("/nowhere/job.yaml", "cannot be read"),
                              (self.file(b"\xff", "bytes"), "UTF-8"), (self.file("x" * (2 << 20), "big"), "1 MiB")):
            with self.subTest(words), self.assertRaisesRegex(shoal.SubmissionError, words):
                self.client.submit(source)
        with self.assertRaisesRegex(TypeError, "roles=… belongs to a function"):
            self.client.submit(self.file(), roles=3)
        self.assertEqual(self.client.plan(self.file())["name"], "quick")
        self.assertEqual(list(self.client.jobs()), [])

    def test_who_may_not(self):
        wrong = shoal.Client(self.server.url, "shoal_000000000000_" + "0" * 64)
        self.addCleanup(wrong.close)
        with self.assertRaises(shoal.NotSignedInError) as caught:
            wrong.submit(self.file())
        self.assertEqual(caught.exception.status, 401)
        with self.assertRaises(shoal.NotSignedInError):
            next(wrong.jobs())
        reader = shoal.Client(self.server.url, self.server.make_user("vera", "research", "viewer"))
        self.addCleanup(reader.close)
        with self.assertRaises(shoal.NotAllowedError):
            reader.submit(self.file(), team="research")
        job = self.client.submit(self.file())
        job.wait(60 * PATIENCE)
        with self.assertRaises(shoal.NotFoundError):
            reader.job(job.id)
        self.assertNotIn(self.server.admin, repr(vars(self.client)) + repr(self.client))

    def test_nothing_listens(self):
        self.server.kill()
        began = time.monotonic()
        with self.assertRaisesRegex(shoal.ServerUnavailableError, "cannot be reached: Connection refused"):
            self.connect(retry=0.5).me()
        self.assertGreater(time.monotonic() - began, 0.4)
        self.assertIsInstance(shoal.ServerUnavailableError("x"), ConnectionError)

    def test_the_server_is_killed_while_a_log_is_followed(self):
        job = self.client.submit(self.file(job_text("long", COUNT)))
        lines, waited, events = [], [], []
        others = [threading.Thread(target=lambda: waited.append(job.wait())),
                  threading.Thread(target=lambda: events.extend(job.events()))]
        for thread in others:
            thread.start()
        with self.assertLogs("shoal", logging.WARNING) as told:
            for line in job.logs():
                lines.append(line)
                if len(lines) == 40:
                    self.server.kill()
                    self.server.start()
        for thread in others:
            thread.join(60 * PATIENCE)
        self.assertEqual(*counted(lines))
        self.assertEqual(len(lines), 2 * LINES)
        self.assertEqual(waited[0].state, "succeeded")
        self.assertEqual(events, list(job.events(follow=False)))
        self.assertTrue(any("trying again" in line for line in told.output), told.output)
        self.assertTrue(any("answers again" in line for line in told.output), told.output)

    def test_time_outs(self):
        job = self.client.submit(self.file(SLEEPER))
        began = time.monotonic()
        with self.assertRaises(TimeoutError):
            job.wait(0.5)
        self.assertLess(time.monotonic() - began, 10 * PATIENCE)
        self.assertIn(job.state, ("pending", "admitted", "starting", "running"))
        job.stop(now=True)
        self.assertEqual(job.wait(60 * PATIENCE).state, "cancelled")
        self.assertEqual(job.stop().state, "cancelled")
        impatient = shoal.Client(self.server.url, self.server.admin, patience=0.5)
        self.addCleanup(impatient.close)
        other = impatient.submit(self.file(SLEEPER))
        self.server.kill()
        with self.assertRaises(shoal.ServerUnavailableError):
            other.wait()

    def test_suspend_resume_scale_stop(self):
        job = self.client.submit(self.file(SLEEPER.replace("replicas: 2", "replicas: 2, min: 1, max: 4")))
        self.server.wait_for(job.id, ("running",))
        job.scale("worker", 3)
        self.assertTrue(poll_until(lambda: len([t for t in job.tasks if t.state == "running"]) == 3, 60 * PATIENCE, 0.05), job.tasks)
        with self.assertRaisesRegex(shoal.ApiError, "4"):
            job.scale("worker", 9)
        job.suspend()
        self.server.wait_for(job.id, ("suspended",))
        self.assertEqual(job.state, "suspended")
        job.resume()
        self.server.wait_for(job.id, ("running",))
        self.assertTrue(poll_until(lambda: job.tasks[0].state == "running", 60 * PATIENCE, 0.05))
        job.stop()
        self.assertEqual(job.wait(60 * PATIENCE).state, "cancelled")

    def test_jobs_over_pages(self):
        self.server.make_user("ada", "research")
        ids = [self.client.submit(self.file(), name=f"n{i}", set=["roles.worker.replicas=1"]).id for i in range(5)]
        team = self.client.submit(self.file(), team="research", name="other")
        shoal._client._PAGE, page = 2, shoal._client._PAGE  # pylint: disable=protected-access
        self.addCleanup(setattr, shoal._client, "_PAGE", page)  # pylint: disable=protected-access
        self.assertEqual([job.id for job in self.client.jobs(team="default")], ids[::-1])
        self.assertEqual([job.id for job in self.client.jobs(limit=3)], [team.id, ids[4], ids[3]])
        self.assertEqual([job.id for job in self.client.jobs(team="research", user="admin")], [team.id])
        for job in self.client.jobs():
            job.wait(60 * PATIENCE)
        self.assertEqual(len(list(self.client.jobs(state=("succeeded", "failed"), since=team.record.submitted))), 1)
        self.assertEqual(list(self.client.jobs(state="running")), [])
        self.assertEqual(self.client.job(ids[0][:-2]).id, ids[0])
        with self.assertRaises(shoal.ApiError):
            next(self.client.jobs(state="walking"))

    def test_files_and_outputs(self):
        folder = self.server.home.path("program")
        os.makedirs(os.path.join(folder, "sub", ".git"))
        self.server.home.write("program/.shoalignore", "*.tmp\n/data/**\n!keep.tmp\n[!a-y]z\n")
        for name in ("a.tmp", "keep.tmp", "zz", "az", "sub/.git/config", "empty"):
            self.server.home.write(f"program/{name}", "" if name == "empty" else name)
        self.server.home.write("program/big", os.urandom(9 << 20))
        self.server.home.write("program/sub/run.sh", "find . -type f -o -type l | sort; wc -c < big; mkdir $SHOAL_OUTPUT/d; cp big $SHOAL_OUTPUT/d\n")
        os.symlink("../big", os.path.join(folder, "sub", "link"))
        path = self.server.home.write("program/job.yaml", "files: .   # all of it\nroles: {w: {replicas: 1, command: [sh, sub/run.sh]}}\n")
        job = self.client.submit(path)
        shown = [line.text for line in job.logs()]
        self.assertEqual(job.wait().state, "succeeded", shown)
        self.assertEqual(job.name, "job")
        expected = {"./.shoalignore", "./az", "./big", "./empty", "./job.yaml", "./keep.tmp", "./sub/link", "./sub/run.sh"}
        self.assertEqual((set(shown[:-1]), shown[-1]), (expected, str(9 << 20)))
        to = self.server.home.path("copied")
        self.assertEqual(job.download(to), [os.path.join(os.path.realpath(to), "w-0.0", "d", "big")])
        with open(os.path.join(to, "w-0.0", "d", "big"), "rb") as copied, open(os.path.join(folder, "big"), "rb") as sent:
            self.assertEqual(copied.read(), sent.read())
        with self.subTest("a dict with files="):
            job = self.client.submit({"name": "d", "roles": {"w": {"replicas": 1, "command": ["cat", "zz.txt"]}}},
                                     files=os.path.dirname(self.server.home.write("zz.txt", "shipped")) + "/program/sub/..")
            self.assertEqual(job.wait(60 * PATIENCE).state, "failed")
        with self.subTest("a link that leads out"):
            os.symlink("/etc/passwd", os.path.join(folder, "out"))
            with self.assertRaisesRegex(shoal.SubmissionError, "leads to /etc/passwd, out of the directory"):
                self.client.submit(path)

    def test_foreign_descriptions(self):
        script = self.file("#!/bin/bash\n#SBATCH --ntasks=2\n#SBATCH --job-name=batch\nsrun echo from slurm\n", "t.sbatch")
        os.environ["PATH"], path = os.path.dirname(self.server.home.binary) + ":" + os.environ["PATH"], os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        with self.assertLogs("shoal", logging.WARNING) as told:
            job = self.client.submit(script)
        self.assertIn("the script runs in each of the 2 tasks", "".join(told.output))
        self.assertEqual([line.text for line in job.logs()], ["from slurm"] * 2)
        with self.assertRaisesRegex(shoal.SubmissionError, "document"):
            self.client.submit(self.file("a: 1\n---\nb: 2\n", "two.yaml"))

    def test_ctrl_c_ends_the_wait_and_not_the_job(self):
        job = self.client.submit(self.file(SLEEPER))
        for call in ("job.wait()", "[print(line.text, flush=True) for line in job.logs()]"):
            program = f"import shoal\nclient = shoal.Client()\njob = client.job({job.id!r})\nprint('ready', flush=True)\n{call}\n"
            env = {**os.environ, "PYTHONPATH": os.path.join(SOURCE, "python"), "SHOAL_SERVER": self.server.url, "SHOAL_TOKEN": self.server.admin}
            with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
                process.stdout.readline()
                if "logs" in call:
                    self.assertEqual(process.stdout.readline(), b"up\n")
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=20 * PATIENCE)
            self.assertIn(b"KeyboardInterrupt", errors)
        self.assertNotIn(job.refresh().state, ("cancelled", "finishing"))

    def test_submissions_are_not_repeated(self):
        """An answer that is lost: the client asks again with the same key and finds the first job."""
        transport, lost = self.client._transport, []  # pylint: disable=protected-access
        whole = transport._body  # pylint: disable=protected-access

        def body(response, deadline):
            if response.status == 201 and not lost:
                lost.append(whole(response, deadline))
                raise shoal._http._NotAnswered(transport.unavailable(OSError("lost")))  # pylint: disable=protected-access
            return whole(response, deadline)

        transport._body = body  # pylint: disable=protected-access
        job = self.client.submit(self.file())
        self.assertEqual(json.loads(lost[0])["id"], job.id)
        self.assertEqual([one.id for one in self.client.jobs()], [job.id])


class FunctionTest(unittest.TestCase):
    def test_without_cloudpickle(self):
        with Server() as server, shoal.Client(server.url, server.admin) as client:
            known = sys.modules.get("cloudpickle")
            sys.modules["cloudpickle"] = None
            try:
                with self.assertRaisesRegex(shoal.SubmissionError, "needs the package cloudpickle, which is not installed"):
                    client.submit(counted, [])
            finally:
                del sys.modules["cloudpickle"]
                if known is not None:
                    sys.modules["cloudpickle"] = known

    @unittest.skipUnless(cloudpickle, "cloudpickle is not installed")
    def test_functions(self):
        factor = 21

        @shoal.task(roles={"worker": 2}, python=sys.executable)
        def multiply(value, more=0):
            print("in", os.environ["SHOAL_ROLE"], flush=True)
            return {"product": value * factor + more, "index": int(os.environ["SHOAL_INDEX"])}

        self.assertIn("product", str(multiply.function.__code__.co_consts))
        with Server() as server, shoal.Client(server.url, server.admin) as client:
            job = client.submit(multiply, 2, kwargs={"more": 1}, name="called")
            shown = sorted(line.text for line in job.logs())
            self.assertEqual(job.wait().state, "succeeded", shown)
            self.assertEqual(shown, ["in worker", "in worker"])
            self.assertEqual(job.returned(), {f"worker-{i}": {"product": 43, "index": i} for i in range(2)})
            with self.subTest("a value that JSON does not hold"):
                job = client.submit(lambda: {1, 2}, python=sys.executable)
                job.wait(check=True)
                with self.assertRaisesRegex(shoal.ShoalError, "allow_pickle"):
                    job.returned()
                self.assertEqual(job.returned(allow_pickle=True), {"worker-0": {1, 2}})
            with self.subTest("an exception"):
                job = client.submit(lambda: 1 / 0, python=sys.executable)
                self.assertTrue(any("ZeroDivisionError" in line.text for line in job.logs()))
                self.assertEqual(job.wait().state, "failed")
            with self.assertRaisesRegex(shoal.SubmissionError, "cannot be shipped"):
                client.submit(multiply, threading.Lock())


class AsyncTest(unittest.TestCase):
    def test_async(self):
        with Server() as server:
            asyncio.run(self.use(server))
            left = poll_until(lambda: not [t for t in threading.enumerate() if t.name.startswith("shoal-")], 20 * PATIENCE)
            self.assertTrue(left, threading.enumerate())

    async def use(self, server):
        path = server.home.write("job.yaml", job_text("long", COUNT))
        async with shoal.AsyncClient(server.url, server.admin) as client:
            jobs = await asyncio.gather(*(client.submit(path) for _ in range(2)))
            waits = [asyncio.ensure_future(job.wait(check=True)) for job in jobs]
            lines, other = [], []

            async def follow():
                async for line in jobs[1].logs("worker-1"):
                    other.append(line.text)

            following = asyncio.ensure_future(follow())
            async for line in jobs[0].logs():
                lines.append(line)
                if len(lines) == 20:
                    server.kill()
                    await asyncio.get_running_loop().run_in_executor(None, server.start)
            self.assertEqual(*counted(lines))
            self.assertEqual([record.state for record in await asyncio.gather(*waits)], ["succeeded"] * 2)
            await following
            self.assertEqual(other, counted(lines)[1])
            self.assertEqual({job.id async for job in client.jobs(state="succeeded")}, {job.id for job in jobs})
            self.assertEqual([e.seq async for e in jobs[0].events()], [e.seq async for e in jobs[0].events(follow=False)])
            self.assertEqual(len([line async for line in jobs[0].logs(follow=False)]), 2 * LINES)
            await self.cancel(client, server.home.write("sleeper.yaml", SLEEPER))

    async def cancel(self, client, path):
        """A wait that is cancelled, and a follower that is left."""
        job = await client.submit(path)
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(job.wait(), 0.5)
        lines = job.logs()
        self.assertEqual((await lines.__anext__()).text, "up")
        await lines.aclose()
        with self.assertRaises(TimeoutError):
            await job.wait(0.2)
        await job.stop(now=True)
        self.assertEqual((await job.wait()).state, "cancelled")
        self.assertEqual(await job.state(), "cancelled")


class LoginTest(unittest.TestCase):
    """The login file and a pinned certificate, as `shoal login` leaves them."""

    def test_pinned_certificate(self):
        with Server(options=("--tls-self-signed", "--name", "localhost")) as server:
            fingerprint = server.ready.get("fingerprint", "")
            self.assertRegex(fingerprint, "^[0-9a-f]{64}$")
            config = server.home.path("config")
            code, _, err = server.home.run("login", server.url, "--fingerprint", fingerprint, "--token-file", server.token_file,
                                           env={"XDG_CONFIG_HOME": config})
            self.assertEqual(code, 0, err)
            self.environ(XDG_CONFIG_HOME=config, SHOAL_SERVER=None, SHOAL_TOKEN=None)
            with shoal.Client() as client:
                self.assertEqual((client.url, client.me()["user"]), (server.url, "admin"))
                job = client.submit(server.home.write("job.yaml", job_text()))
                self.assertEqual(job.wait(60 * PATIENCE).state, "succeeded")
            other = shoal.Client(fingerprint="0" * 64)
            with self.assertRaisesRegex(shoal.ShoalError, "another fingerprint"):
                other.me()
            with self.assertRaisesRegex(shoal.ShoalError, "another fingerprint"):
                other._transport.open(shoal._http.Request("GET", "/events"), 5)  # pylint: disable=protected-access
            self.environ(XDG_CONFIG_HOME=server.home.path("empty"))
            with self.assertRaisesRegex(shoal.ShoalError, "is not trusted"):
                shoal.Client(server.url, server.admin).me()
            os.chmod(os.path.join(config, "shoal", "login.json"), 0o644)
            self.environ(XDG_CONFIG_HOME=config)
            with self.assertRaisesRegex(shoal.ConfigurationError, "other users may read it"):
                shoal.Client()

    def test_nothing_is_named(self):
        self.environ(XDG_CONFIG_HOME="/nowhere", SHOAL_SERVER=None, SHOAL_TOKEN=None)
        with self.assertRaisesRegex(shoal.ConfigurationError, "no server is named"):
            shoal.Client()
        with self.assertRaisesRegex(shoal.ConfigurationError, "there is no token for the server https://ml.example:7117"):
            shoal.Client("HTTPS://ML.example:7117/")
        for url in ("ftp://a", "https://", "http://a:b", "http://u:p@a", "http://a b", "http://a/?q"):
            with self.subTest(url), self.assertRaises(shoal.ConfigurationError):
                shoal.Client(url, "t")

    def environ(self, **values):
        for name, value in values.items():
            old = os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
            self.addCleanup(os.environ.pop, name, None)
            if old is not None:
                self.addCleanup(os.environ.__setitem__, name, old)


class TypesTest(unittest.TestCase):
    def test_mypy(self):
        found = subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True, check=False)
        if found.returncode != 0:
            self.skipTest("mypy is not installed")
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "-p", "shoal"],
                              cwd=os.path.join(SOURCE, "python"), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
