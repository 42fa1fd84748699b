"""Bad input, tried on the real binary: each case ends with one clear sentence and exit code 1 or 2, and leaves nothing.

Nothing means: no process, no port, no cgroup, no scratch, no half-written file, and an old model that is still whole.
"""
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "faults")]
import harness  # noqa: E402
import planted  # noqa: E402

SMALL = ["--dim", "16", "--epochs", "1", "--min-count", "1", "--threads", "1"]


def small(**others):
    """SMALL with some values replaced."""
    arguments = list(SMALL)
    for name, value in others.items():
        arguments[arguments.index(f"--{name}") + 1] = str(value)
    return arguments


class Case(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.output = self.home.path("vectors")

    def train(self, *arguments, seconds=60, **options):
        """`shoal train word2vec` into self.output: (exit code, standard error)."""
        code, out, err = self.home.run("train", "word2vec", "--output", self.output, *arguments, seconds=seconds, **options)
        self.assertNotEqual(code, -9, f"took longer than {seconds} s\n{out}\n{err}")
        return code, err

    def corpus(self, words=30_000):
        path = self.home.path("corpus.txt")
        planted.write_corpus(path, words)
        return path

    def assert_refused(self, code, err, *says):
        """Exit code 1 or 2; the last line is one sentence that says all of `says`; nothing is left, no output either."""
        self.assertIn(code, (1, 2), err)
        lines = [line for line in err.splitlines() if line.strip()]
        self.assertTrue(lines, "it said nothing")
        for word in says:
            self.assertIn(word.lower(), lines[-1].lower(), err)
        self.assertNotIn("terminate called", err)
        self.assertFalse(os.path.exists(self.output) and os.listdir(self.output), "an output directory was left")
        self.assert_nothing_left()

    def assert_nothing_left(self):
        self.assertEqual(self.home.leftovers(outputs=[self.output]), [])

    def assert_good_model(self, words=1):
        vectors = harness.read_vectors(os.path.join(self.output, "vectors.bin"))
        self.assertGreaterEqual(len(vectors), words)


class Data(Case):
    def test_missing(self):
        code, err = self.train("--data", self.home.path("nowhere.txt"), *SMALL)
        self.assert_refused(code, err, "nowhere.txt")

    def test_directory_without_files(self):
        os.mkdir(self.home.path("folder"))
        code, err = self.train("--data", self.home.path("folder"), *SMALL)
        self.assert_refused(code, err, "folder")

    def test_empty(self):
        code, err = self.train("--data", self.home.write("empty.txt", ""), *SMALL)
        self.assert_refused(code, err, "empty")

    def test_white_space_only(self):
        code, err = self.train("--data", self.home.write("blank.txt", " \n\t \n" * 1000), *SMALL)
        self.assert_refused(code, err, "word")

    def test_binary(self):
        code, err = self.train("--data", self.home.write("noise.bin", random.Random(1).randbytes(1 << 20)), *SMALL)
        self.assert_refused(code, err, "noise.bin")

    def test_truncated_gzip(self):
        import gzip
        whole = gzip.compress(b"some words to train on\n" * 50_000)
        code, err = self.train("--data", self.home.write("cut.gz", whole[:len(whole) // 2]), *SMALL)
        self.assert_refused(code, err, "cut.gz")

    def test_unreadable(self):
        path = self.corpus()
        os.chmod(path, 0)
        options = {}
        if os.getuid() == 0:  # root reads everything: be somebody else
            options = {"user": 65534, "group": 65534, "extra_groups": []}
            for folder, _, files in os.walk(self.home.root):
                for entry in [folder] + [os.path.join(folder, f) for f in files]:
                    os.chown(entry, 65534, 65534)
            if not self._others_can_run():
                self.skipTest("the build directory is closed to other users")
        code, err = self.train("--data", path, *SMALL, **options)
        self.assert_refused(code, err, "corpus.txt", "ermission")

    def _others_can_run(self):
        done = subprocess.run([self.home.binary, "--version"], user=65534, group=65534, extra_groups=[], check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) if self._reachable() else None
        return done is not None and done.returncode == 0

    def _reachable(self):
        folder = os.path.dirname(self.home.binary)
        while os.stat(folder).st_mode & 0o001:
            if folder == "/":
                return True
            folder = os.path.dirname(folder)
        return False

    def test_file_that_disappears_or_shrinks(self):
        for spoil in (os.unlink, lambda p: os.truncate(p, os.path.getsize(p) // 3)):
            path = self.corpus(1_500_000)
            process = self.home.start("train", "word2vec", "--data", path, "--output", self.output, "--workers", "2",
                                      *small(epochs=40))
            harness.poll_until(lambda: any(p.kind == "worker" for p in self.home.processes()) or
                               process.poll() is not None, 20)
            spoil(path)
            code = process.wait(timeout=90 * harness.PATIENCE)
            said = harness.said(process)
            # Who holds the file open may well finish; who does not must say which file it was.
            if code != 0:
                self.assertIn(code, (1, 2), said)
                self.assertIn("corpus.txt", said)
            else:
                self.assert_good_model(100)
            self.assert_nothing_left()
            shutil.rmtree(self.output, ignore_errors=True)

    def test_too_few_words(self):
        code, err = self.train("--data", self.home.write("few.txt", "one two three\n"), "--min-count", "5")
        self.assert_refused(code, err, "min")

    def test_one_word_of_100_mb(self):
        path = self.home.path("long.txt")
        with open(path, "wb") as f:
            for _ in range(100):
                f.write(b"x" * 1_000_000)
        code, err = self.train("--data", path, *SMALL, "--workers", "2", "--servers", "1")
        self.assert_refused(code, err, "word")

    def test_invalid_utf8(self):
        text = b"caf\xe9 \xff\xfe na\xefve plain \xc3 words here\n" * 2000
        code, err = self.train("--data", self.home.write("latin1.txt", text), *SMALL)
        if code == 0:  # words are bytes; then the model must be whole
            self.assert_good_model(3)
            self.assert_nothing_left()
        else:
            self.assert_refused(code, err, "utf-8")

    def test_more_workers_than_lines(self):
        path = self.home.write("two.txt", "a b c d e f g h\na b c d e f g h\n")
        code, err = self.train("--data", path, *SMALL, "--workers", "6", "--servers", "1")
        if code == 0:  # empty shards are allowed; then the model must be whole
            self.assert_good_model(8)
            self.assert_nothing_left()
        else:
            self.assert_refused(code, err, "worker")


class Parameters(Case):
    def test_out_of_range(self):
        path = self.corpus()
        for name, value in (("--dim", "0"), ("--dim", "100000"), ("--dim", "ten"), ("--window", "-1"), ("--epochs", "0"),
                            ("--workers", "0"), ("--negative", "1000000"), ("--alpha", "nan")):
            with self.subTest(name=name, value=value):
                code, err = self.train("--data", path, name, value)
                self.assertEqual(code, 2, err)
                self.assert_refused(code, err, name.lstrip("-"))

    def test_unknown_option_and_command(self):
        for arguments in (("train", "word2vec", "--dimension", "10"), ("trian",), ("train", "wordvec")):
            code, _, err = self.home.run(*arguments)
            self.assertEqual(code, 2, err)
            self.assertTrue(err.strip())

    def test_a_row_that_is_no_key(self):
        for key in ("-1", "99999999999999999999", "1.5", "x", ""):
            code, _, err = self.home.run("tables", "word2vec", "in", "--row", key)
            self.assertEqual(code, 2, err)
            self.assert_refused(code, err, f"--row: got {key}, expected a key: a whole number from 0 to 18446744073709551615")

    def test_unknown_engine(self):
        path = self.home.write("fine.yaml", 'name: x\nroles: {worker: {replicas: 1, command: ["true"]}}\n')
        for command in ("run", "plan"):
            code, out, err = self.home.run(command, path, "--engine", "nosuch")
            self.assertEqual((code, out), (2, ""), err)
            self.assertIn("got the engine nosuch, expected one of: local", err)

    def test_an_engine_that_is_not_configured_is_wrong_usage(self):
        path = self.home.write("fine.yaml", 'name: x\nimage: i\nroles: {worker: {replicas: 1, command: ["true"]}}\n')
        for engine, variables, says in (("marathon", {"SHOAL_MARATHON_URL": ""}, "SHOAL_MARATHON_URL"),
                                        ("docker", {"DOCKER_HOST": "tcp://127.0.0.1:1"}, "DOCKER_HOST")):
            code, out, err = self.home.run("run", path, "--engine", engine, env={**self.home.environ(), **variables})
            self.assertEqual(code, 2, out + err)
            self.assertIn(says, err)

    def test_a_result_that_goes_nowhere_is_an_error(self):
        path = self.home.write("fine.yaml", 'name: x\nroles: {worker: {replicas: 1, command: ["true"]}}\n')
        for command in (["import", path], ["plan", path], ["--version"]):
            code, _, err = self.home.run(*command, preexec_fn=lambda: os.close(1))
            self.assertEqual(code, 1, err)
            self.assertIn("cannot write to standard output", err)

    def test_a_working_directory_that_is_gone(self):
        path = self.home.write("fine.yaml", 'name: x\nroles: {worker: {replicas: 1, command: ["true"]}}\n')
        gone = self.home.path("gone")
        os.mkdir(gone)
        code, _, err = self.home.run("plan", os.path.join("..", os.path.basename(path)), cwd=gone,
                                     preexec_fn=lambda: os.rmdir(gone))
        self.assertEqual(code, 2, err)
        self.assertIn("the working directory has been removed", err)

    def test_engines_that_are_not_here(self):
        env = {**self.home.environ(), "DOCKER_HOST": "unix:///nowhere/docker.sock", "PATH": "/nowhere"}
        found = {one["name"]: one for one in json.loads(self.home.run("doctor", "--json", env=env)[1])["findings"]}
        for name, says in (("docker", "unix:///nowhere/docker.sock"), ("slurm", "there is no s"),
                           ("marathon", "SHOAL_MARATHON_URL")):
            self.assertEqual((found[name]["usable"], found[name]["verdict"]), (False, "ok"))
            self.assertIn(says, found[name]["meaning"])

    def test_job_file(self):
        for name, text, says in (
                ("absent.yaml", None, "absent.yaml"),
                ("empty.yaml", "", "empty.yaml"),
                ("typo.yaml", "name: x\nframework: generic\nroles:\n  worker: {replica: 2, command: [\"true\"]}\n", "replicas"),
                ("broken.yaml", "name: [x\n", "broken.yaml:"),
                ("bytes.yaml", b"\x00\xff\xfe\x01" * 100, "bytes.yaml"),
                ("bomb.yaml", "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
                    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)), "bomb.yaml")):
            with self.subTest(name):
                path = self.home.path(name) if text is None else self.home.write(name, text)
                code, _, err = self.home.run("run", path, seconds=20)
                self.assertEqual(code, 2, err)
                self.assertIn(says, err)


class Output(Case):
    def test_existing_directory(self):
        os.mkdir(self.output)
        mine = os.path.join(self.output, "mine.txt")
        with open(mine, "w", encoding="ascii") as f:
            f.write("keep me")
        code, err = self.train("--data", self.corpus(), *SMALL)
        self.assertIn(code, (1, 2), err)
        self.assertIn("vectors", err.splitlines()[-1])
        self.assertEqual(os.listdir(self.output), ["mine.txt"])
        self.assert_nothing_left()

    def test_parent_that_is_a_file(self):
        self.output = os.path.join(self.home.write("file", "x"), "vectors")
        code, err = self.train("--data", self.corpus(), *SMALL)
        self.assertIn(code, (1, 2), err)
        self.assertTrue(err.strip())
        self.assert_nothing_left()

    def test_full_disk_at_save(self):
        """A file system of 64 KiB holds the old model, but not the new one."""
        mount = self.home.path("disk")
        os.mkdir(mount)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", mount], stderr=subprocess.DEVNULL,
                          check=False).returncode != 0:
            self.skipTest("mounting a small file system needs root")
        self.addCleanup(subprocess.run, ["umount", "-l", mount], check=False)
        self.output = os.path.join(mount, "vectors")
        code, err = self.train("--data", self.corpus(), *small(dim=4))
        self.assertEqual(code, 0, err)
        old = self._contents()
        code, err = self.train("--data", self.corpus(), *small(dim=128))
        self.assertEqual(code, 1, err)
        self.assertRegex(err.lower(), "no space|disk")
        self.assertEqual(self._contents(), old, "the old model did not stay whole")
        self.assert_nothing_left()


    def _contents(self):
        """{name: bytes} of the output directory."""
        found = {}
        for name in os.listdir(self.output):
            with open(os.path.join(self.output, name), "rb") as f:
                found[name] = f.read()
        return found


_SLOW_JOB = """\
name: patient
framework: generic
roles:
  worker: {{replicas: 1, command: [sh, -c, "while [ ! -e {stop} ]; do sleep 0.05; done"]}}
limits: {{stop_grace: 1s}}
"""

# Binds its port without SO_REUSEADDR and SO_REUSEPORT, while the launcher's lease is in the way.
_BIND_JOB = """\
name: binder
framework: generic
roles:
  worker:
    replicas: 1
    ports: [data]
    command: [python3, -c, "import os, socket; socket.socket().bind(('127.0.0.1', int(os.environ['SHOAL_PORT'])))"]
    restart: {when: never}
"""


class Network(Case):
    def test_taken_port(self):
        code, out, err = self.home.run("run", self.home.write("job.yaml", _BIND_JOB))
        self.assertEqual(code, 1, out + err)
        self.assertIn("worker", str(self.home.verdict().get("reason", "")))
        self.assert_nothing_left()

    def test_wrong_token(self):
        stop = self.home.path("stop")
        process = self.home.start("run", self.home.write("job.yaml", _SLOW_JOB.format(stop=stop)))
        # Everybody who belongs to the job has proved the token by then.
        self.assertTrue(harness.poll_until(lambda: " running" in harness.said(process), 20), "the job did not start")
        directory = self.home.job_dirs()[0]
        token = os.path.join(directory, "token")
        with open(token, encoding="ascii") as f:
            right = f.read()
        os.chmod(token, 0o600)
        with open(token, "w", encoding="ascii") as f:
            f.write("0" * 64)
        code, out, err = self.home.run("stop", os.path.basename(directory), seconds=20)
        with open(token, "w", encoding="ascii") as f:
            f.write(right)
        self.assertNotIn(code, (0, -9), out + err)
        self.assertTrue(err.strip())
        self.assertIsNone(process.poll(), "a stranger stopped the job")
        with open(stop, "w", encoding="ascii"):
            pass
        self.assertEqual(process.wait(timeout=30 * harness.PATIENCE), 0)
        self.assert_nothing_left()

    def test_garbage_to_every_port(self):
        path = self.corpus(600_000)
        process = self.home.start("train", "word2vec", "--data", path, "--output", self.output, "--workers", "2", "--servers",
                                  "2", "--dim", "32", "--epochs", "40", "--min-count", "1", "--threads", "1")
        def all_listen():
            kinds = {p.kind for p in self.home.processes()}
            return {"coordinator", "server", "worker"} <= kinds and len(self.home.ports()) >= 3
        harness.poll_until(lambda: all_listen() or process.poll() is not None, 20)
        ports = self.home.ports()
        self.assertIsNone(process.poll(), "the job was over before its ports could be tried")
        self.assertGreaterEqual(len(ports), 3, "coordinator and two servers should listen")
        rng = random.Random(7)
        held = []
        for port in sorted(ports):
            for message in self._garbage(rng):
                held.append(self._send(port, message))
        for connection in filter(None, held):
            connection.close()
        code = process.wait(timeout=120 * harness.PATIENCE)
        self.assertEqual(code, 0, harness.said(process))
        purity = planted.purity(harness.read_vectors(os.path.join(self.output, "vectors.bin")))
        self.assertGreater(purity, 0.9)
        self.assert_nothing_left()

    @staticmethod
    def _garbage(rng):
        upgrade = (b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                   b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
        return [
            b"",                                         # says nothing and holds the line
            b"\0", b"G", b"\xff" * 7,                    # truncated
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /" + b"a" * 100_000,
            upgrade + b"\x82\xff" + b"\xff" * 8 + b"mask", upgrade + rng.randbytes(4096),
            upgrade + b"\x81\x85\0\0\0\0{\"a\":",
            struct.pack("<I", 0xffffffff) + b"x" * 64, struct.pack(">I", 0x7fffffff) + b"x" * 64, struct.pack("<Q", 1 << 62),
            rng.randbytes(100), rng.randbytes(1 << 20),
        ]

    @staticmethod
    def _send(port, message):
        """An open connection that has sent the message, or None when the other side has hung up already."""
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=5)
            connection.sendall(message)
            return connection
        except OSError:
            return None


if __name__ == "__main__":
    signal.alarm(int(280 * harness.PATIENCE))
    unittest.main()
