"""Shared base of the tests of whole jobs on real clusters: running the command, job files, output checks, the final table."""
import contextlib
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from harness import DEFAULT_BINARY as SHOAL  # noqa: E402
from harness import SOURCE, poll_until  # noqa: E402

# Where script/frameworks makes the environments of other people's frameworks.
FRAMEWORKS = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "shoal", "frameworks")
# In the background of a shell SIGINT is ignored, and so it would be in the commands that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
ROWS = []  # of the table at the end: (what, seconds, what came of it)


def until(condition, seconds=60):
    return poll_until(condition, seconds, 0.05)


class OnTerminal:
    """A command on a terminal of 24 rows and 80 columns."""

    def __init__(self, env, *arguments):
        self.shown = ""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.execvpe(SHOAL, [SHOAL, *arguments], env)

    def read(self, seconds):
        """False at its end."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            block = os.read(self.master, 4096)
        except OSError:  # what reading says when the other side is gone
            return False
        self.shown += block.decode()
        return bool(block)

    def until(self, text, seconds=20):
        """Whether it has shown this."""
        deadline = time.monotonic() + seconds
        while text not in self.shown and time.monotonic() < deadline:
            if not self.read(0.1):
                break
        return text in self.shown

    def type(self, text):
        os.write(self.master, text.encode())

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self):
        """Its exit code."""
        while self.read(60):
            pass
        os.close(self.master)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class ClusterJobs(unittest.TestCase):
    """A state home of its own for each test. Sub-classes say ENGINE, IMAGE, and what is left on the cluster."""

    ENGINE = ""
    IMAGE = ""
    GONE_IN = 20  # seconds, for what is left after a job

    def left(self):
        """Names of what the cluster still has of jobs."""
        raise NotImplementedError

    def clear(self):
        """Removes that, so that the next test is not harmed."""
        raise NotImplementedError

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix=f"shoal-{self.ENGINE}-test.")
        self.env = dict(os.environ, SHOAL_HOME=os.path.join(self.home, "state"), SHOAL_LOG="error", SHOAL_ENGINE=self.ENGINE)
        self.begun = time.monotonic()
        self.started = []

    def tearDown(self):
        for one in self.started:  # of a test that went wrong
            if one.poll() is None:
                one.kill()
                print("was running still:", one.communicate()[0])
        left = [] if until(lambda: not self.left(), self.GONE_IN) else self.left()
        if left:
            self.clear()
        shutil.rmtree(self.home, ignore_errors=True)
        self.assertEqual(left, [], "was left behind")

    def path(self, name):
        return os.path.join(self.home, name)

    def row(self, what, said):
        ROWS.append((what, f"{time.monotonic() - self.begun:.1f} s", said))

    def write(self, text, name="job.yaml"):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def job(self, script, workers=2, more="", resources=""):
        return self.write(f"name: test\nimage: {self.IMAGE}\nroles:\n  worker:\n    replicas: {workers}\n{resources}"
                          f"    command: [sh, -c, {json.dumps(script)}]\n{more}")

    def start(self, *arguments):
        self.started.append(subprocess.Popen([SHOAL, *arguments], env=self.env, cwd=self.home, stdin=subprocess.DEVNULL,
                                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return self.started[-1]

    def finish(self, started, code=0, seconds=110):
        """What it said, once it has ended with this code."""
        try:
            out, _ = started.communicate(timeout=seconds)
        finally:
            started.kill()
        self.assertEqual(started.returncode, code, out)
        return out

    def shoal(self, *arguments, code=0, seconds=110):
        return self.finish(self.start(*arguments), code, seconds)

    def ask(self, *arguments, **options):
        """A command beside a job that runs, to its end."""
        return subprocess.run([SHOAL, *arguments], env=self.env, cwd=self.home, capture_output=True, text=True, check=False, **options)

    def logs(self):
        return self.ask("logs", "test").stdout

    # A program that answers on a port.
    GREETER = "while :; do echo -e 'HTTP/1.0 200 OK\\r\\n\\r\\nhello' | nc -l -p 18765 >/dev/null; done"

    def check_forward(self):
        """The port of a job of GREETER, here."""
        forward = self.start("forward", "test", "worker-0", "0:18765")
        said = forward.stdout.readline()
        self.assertRegex(said, r"^[^ ]+:[0-9]+ ")
        port = int(said.split()[0].rsplit(":", 1)[1])

        def fetch():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as s:
                s.sendall(b"GET / HTTP/1.0\r\n\r\n")
                return b"hello" in s.makefile("rb").read()

        self.assertTrue(until(fetch, 20))
        forward.terminate()
        forward.communicate(timeout=10)

    LOOP = "while :; do sleep 0.05; done"

    def exec_that_says(self, script, *options):
        """A command beside worker-0 that has said ready."""
        self.started.append(subprocess.Popen([SHOAL, "exec", *options, "test", "worker-0", "--", "sh", "-c", script], env=self.env, cwd=self.home,
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        self.assertEqual(self.started[-1].stdout.readline(), "ready\n", self.started[-1])
        return self.started[-1]

    def check_exec(self):
        """Of a job of GREETER: input and its end, exit codes, signals, the terminal and its size, a caller that is gone."""
        code = lambda: self.ask("exec", "test", "worker-0", "--", "sh", "-c", "exit 7", stdin=subprocess.DEVNULL).returncode
        self.assertTrue(until(lambda: code() == 7, 20), code())
        fed = self.ask("exec", "test", "worker-0", "--", "sh", "-c", "wc -c; echo wrong >&2", input="x" * 5000000)
        self.assertEqual((fed.stdout.strip(), fed.stderr), ("5000000", "wrong\n"))
        told = self.exec_that_says(f"trap 'echo caught; exit 42' INT; echo ready; {self.LOOP}")
        told.send_signal(signal.SIGINT)
        self.assertIn("caught", self.finish(told, 42, 20))
        # Behind input that it does not read.
        told = self.exec_that_says(f"trap 'exit 44' USR1; echo ready; {self.LOOP}")
        with contextlib.suppress(OSError):
            os.set_blocking(told.stdin.fileno(), False)
            os.write(told.stdin.fileno(), b"x" * 4000000)
        told.send_signal(signal.SIGUSR1)
        self.finish(told, 44, 20)
        told = self.exec_that_says("echo ready; exec sleep 1000")
        told.send_signal(signal.SIGTERM)
        self.finish(told, 143, 20)
        self.check_terminal()
        told = self.exec_that_says("trap '' HUP; echo ready; exec sleep 7777")
        told.kill()
        runs = lambda: "sleep 7777" in self.ask("exec", "test", "worker-0", "--", "ps", stdin=subprocess.DEVNULL).stdout
        self.assertTrue(until(lambda: not runs(), 20))
        missing = self.ask("exec", "test", "worker-0", "--", "/no/such", stdin=subprocess.DEVNULL)
        self.assertIn("cannot start /no/such in the task", missing.stderr)

    def check_terminal(self):
        shown = OnTerminal(self.env, "exec", "test", "worker-0", "--", "sh", "-c",
                           "trap 'echo size $(stty size)' WINCH; trap 'echo caught; exit 43' INT; test -t 0 && echo size $(stty size); "
                           f"read word; echo [$word]; {self.LOOP}")
        self.assertTrue(shown.until("size 24 80"), shown.shown)
        shown.type("blue\r")
        self.assertTrue(shown.until("[blue]"), shown.shown)
        shown.resize(40, 100)
        self.assertTrue(shown.until("size 40 100"), shown.shown)
        shown.type("\x03")
        self.assertEqual(shown.end(), 43, shown.shown)
        self.assertIn("caught", shown.shown)

    def corpus(self):
        """A text for word2vec that all may read: its path."""
        os.chmod(self.home, 0o755)
        with open(self.path("text"), "w") as file:
            for i in range(40000):
                file.write(f"w{i * 7919 % 997} w{i % 89} w{i % 13}" + ("\n" if i % 10 == 0 else " "))
        return self.path("text")

    def check_word2vec(self, more=""):
        """word2vec in deterministic mode gives the bytes that the local engine gives."""
        corpus = self.corpus()
        digests = {}
        for engine in ("local", self.ENGINE):
            job = self.write(f"""name: test
framework: shoal
learn: {{algorithm: word2vec, dim: 32, epochs: 2, min_count: 1, deterministic: true, seed: 3}}
data: {{train: {{source: {corpus}, format: text, shard_by: worker}}}}
roles: {{server: 1, worker: 2}}
outputs: {{model: {self.path(engine)}}}
{more}""")
            self.shoal("run", "--engine", engine, job)
            with open(self.path(engine + "/vectors.bin"), "rb") as file:
                digests[engine] = file.read()
        self.assertEqual(digests["local"], digests[self.ENGINE])
        self.row("word2vec, deterministic, 2 workers + 1 server", "the same bytes as on the local engine")


    def check_tensorflow(self, section, prefix=""):
        """TensorFlow's parameter servers, from the example's own file. `section` of the job file mounts directories of this machine."""
        examples = os.path.join(SOURCE, "examples", "tensorflow")
        volumes = json.dumps([f"{prefix}{place}:{place}:ro" for place in ("/usr", FRAMEWORKS, examples)])
        python = os.path.join(FRAMEWORKS, "tensorflow", "bin", "python3")
        if not os.path.exists(os.path.join(FRAMEWORKS, "tensorflow", ".ready")):
            self.skipTest("script/frameworks tensorflow has not made its environment")
        out = self.shoal("run", self.write(f"""name: test
image: {self.IMAGE}
framework: tensorflow
command: [{python}, {examples}/parameter_server.py]
env: {{TF_CPP_MIN_LOG_LEVEL: "1", PYTHONUNBUFFERED: "1"}}
roles: {{chief: 1, worker: 2, ps: 2}}
{section}: {{volumes: {volumes}}}
"""), seconds=300)
        self.assertRegex(out, r"chief-0 \| .*loss")
        self.row("TensorFlow: a chief, 2 workers, 2 parameter servers", "succeeded; parameter servers and workers ended with the chief")


def check_near(test, result, how, size, parts):
    """What two workers of a job read of two files of this size: all of it this way, and which part each of them took."""
    for index, part in enumerate(parts):
        told = result[f"bytes_read_by_worker_{index}"]
        test.assertEqual((told["part"], told[how]), (part, size), told)
        test.assertEqual(sum(told[one] for one in ("local", "kept", "copied", "remote")), size, told)


def print_table():
    width = max([len(row[0]) for row in ROWS] + [1])
    print("\n| what | time | what came of it |\n| --- | --- | --- |")
    for what, seconds, said in ROWS:
        print(f"| {what:{width}} | {seconds} | {said} |")


def main(tests):
    """Runs the class's tests, or those that are named, and prints the table; the exit code."""
    names = [name for name in sys.argv[1:] if not name.startswith("-")]
    wanted = [f"{tests.__name__}.{name}" for name in names] or [tests.__name__]
    ended = unittest.main(exit=False, verbosity=1, argv=[sys.argv[0], *wanted])
    print("jobs that went wrong:", len(ended.result.failures) + len(ended.result.errors))
    print_table()
    return 0 if ended.result.wasSuccessful() else 1
