"""What the end-to-end tests share: a state home of their own, the real binary, and the search for what it left behind.

A Home is a temporary directory that holds SHOAL_HOME, TMPDIR and the data of one test. Every process of its jobs carries
that directory in its environment or its arguments, so leftovers are found in /proc whoever is their parent.
Standard library only.
"""
import glob
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

_HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("SHOAL_SOURCE") or os.path.abspath(os.path.join(_HERE, "..", ".."))
DEFAULT_BINARY = os.environ.get("SHOAL_BIN") or os.path.join(SOURCE, "build", "dev", "shoal")
# Sanitized and debug builds are slower: deadlines are multiplied by this.
PATIENCE = float(os.environ.get("SHOAL_TEST_PATIENCE", "1"))
# A job whose model is the same bytes on every engine: its text, and where the model goes.
TRAIN = """\
name: vectors
framework: shoal
learn: {algorithm: word2vec, dim: 20, epochs: 3, min_count: 1, deterministic: true, seed: 7}
data: {train: {source: %s, format: text, shard_by: worker}}
roles:
  server: {replicas: 1, follows: worker}
  worker: {replicas: 2}
outputs: {model: %s}
"""


def poll_until(condition, seconds, pause=0.005):
    """The condition's first true value, or its last one when `seconds` have passed."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() >= end:
            return value
        time.sleep(pause)  # poll


class Process:
    """One line of /proc at the moment of looking."""

    def __init__(self, pid, argv, environ, ppid, state):
        self.pid, self.argv, self.environ, self.ppid, self.state = pid, argv, environ, ppid, state

    def __repr__(self):
        return f"{self.pid} {' '.join(self.argv)[:160]}"

    @property
    def kind(self):
        """controller, coordinator, launcher, worker, server, … (the role) for programs."""
        words = self.argv[1:3]
        if words[:1] == ["coordinator"]:
            return "coordinator"
        if words[:1] == ["task"]:
            return "launcher"
        if words[:1] in (["run"], ["train"]):
            return "controller"
        return self.environ.get("SHOAL_ROLE", "?")


def _read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def environ_of(pid):
    """The environment of a process as bytes; empty when it is gone."""
    return _read(f"/proc/{pid}/environ")


def read_process(pid):
    """The process, or None when it is gone or a zombie."""
    stat = _read(f"/proc/{pid}/stat")
    if not stat:
        return None
    fields = stat[stat.rfind(b")") + 2:].split()
    state, ppid = fields[0].decode(), int(fields[1])
    if state in ("Z", "X"):
        return None
    argv = [a.decode("utf-8", "replace") for a in _read(f"/proc/{pid}/cmdline").split(b"\0")[:-1]]
    environ = dict(e.decode("utf-8", "replace").split("=", 1) for e in _read(f"/proc/{pid}/environ").split(b"\0")
                   if b"=" in e)
    return Process(int(pid), argv, environ, ppid, state)


class Home:
    """A state home, a TMPDIR and a place for data; use as a context manager."""

    def __init__(self, binary=None, keep=False):
        self.binary = os.path.abspath(binary or DEFAULT_BINARY)
        self.keep = keep
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="shoal-e2e-"))
        self.home = os.path.join(self.root, "home")
        self.tmp = os.path.join(self.root, "tmp")
        os.mkdir(self.tmp)
        self._guarded = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.kill_processes()
        if self._guarded is not None:
            self._end_jobs()
        if not self.keep:
            shutil.rmtree(self.root, ignore_errors=True)
        if self._guarded is not None:
            os.write(self._guarded, b".")
            os.close(self._guarded)
            self._guarded = None

    def kill_processes(self):
        for process in self.processes():
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def guard(self):
        """From now on this home's processes are killed, and their control groups and its directory removed, also if this process is
        killed. Call it before threads are started."""
        read, self._guarded = os.pipe()
        child = os.fork()
        if child == 0:
            if os.fork() == 0:  # no child of this process: whoever kills its tree does not find it
                self._wait_for_death(read)
            os._exit(0)
        os.waitpid(child, 0)
        os.close(read)

    def _end_jobs(self):
        """Kills what runs until nothing does, and removes the control groups of the jobs."""
        poll_until(lambda: self.kill_processes() or not self.processes(), 30, 0.02)
        jobs = {os.path.basename(d) for d in self.job_dirs()}
        poll_until(lambda: not remove_cgroups(jobs), 5, 0.02)

    def _wait_for_death(self, read):
        os.setsid()
        for number in {int(fd) for fd in os.listdir("/proc/self/fd")} - {read}:
            try:
                os.close(number)
            except OSError:
                pass
        if not os.read(read, 1):  # the end of the file: __exit__ did not happen
            self._end_jobs()
            shutil.rmtree(self.root, ignore_errors=True)
        os._exit(0)

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def write(self, name, content):
        """Writes text or bytes to a file of this home; its path."""
        path = self.path(name)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return path

    def environ(self, extra=None):
        keep = {k: v for k, v in os.environ.items() if not k.startswith("SHOAL_") or k == "SHOAL_SIMD"}
        return {**keep, "SHOAL_HOME": self.home, "TMPDIR": self.tmp, "XDG_CONFIG_HOME": self.path("user-config"), **(extra or {})}

    def start(self, *arguments, env=None, **options):
        """Starts `shoal ARGUMENTS`; standard output and error are collected in one file (Popen.log)."""
        log = self.path(f"out-{len(glob.glob(self.path('out-*')))}")
        with open(log, "wb") as out:
            process = subprocess.Popen([self.binary, *arguments], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, env=self.environ(env), cwd=self.root,
                                       start_new_session=True, **options)
        process.log = log
        return process

    def run(self, *arguments, seconds=60, env=None, cwd=None, **options):
        """Runs `shoal ARGUMENTS` to its end: (exit code, standard output, standard error). -9 when it took too long."""
        try:
            done = subprocess.run([self.binary, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=self.environ(env), cwd=cwd or self.root, check=False,
                                  timeout=seconds * PATIENCE, **options)
        except subprocess.TimeoutExpired as e:
            return -9, (e.stdout or b"").decode("utf-8", "replace"), (e.stderr or b"").decode("utf-8", "replace")
        return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    def marks(self):
        """Bytes, one of which is in the environment or the arguments of each process of this home."""
        return [self.root.encode()]

    def processes(self):
        """Every living process that carries a mark of this home in its environment or its arguments, but not this one."""
        found, marks = [], self.marks()
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            told = _read(f"/proc/{name}/cmdline") + b"\0" + _read(f"/proc/{name}/environ")
            if any(mark in told for mark in marks):
                process = read_process(name)
                if process is not None:
                    found.append(process)
        return found

    def job_dirs(self):
        return sorted(glob.glob(os.path.join(self.home, "jobs", "*")))

    def verdict(self):
        """verdict.json of the newest job, or {}."""
        for directory in reversed(self.job_dirs()):
            try:
                with open(os.path.join(directory, "verdict.json"), encoding="utf-8") as f:
                    return json.load(f)
            except (OSError, ValueError):
                return {}
        return {}

    def stored_end(self):
        """State and reason of the newest job, as a new process reads (and first repairs) the store; {} if it is not ended."""
        code, out, _ = self.run("jobs", "--json", seconds=20)
        last = json.loads(out.splitlines()[-1]) if code == 0 and out.strip() else {}
        return last if last.get("ended") else {}

    def ports(self):
        """The ports on which processes of this home listen now."""
        sockets = set()
        for process in self.processes():
            for link in glob.glob(f"/proc/{process.pid}/fd/*"):
                try:
                    target = os.readlink(link)
                except OSError:
                    continue
                if target.startswith("socket:["):
                    sockets.add(target[8:-1])
        return {port for port, inode in listeners() if inode in sockets}

    def leftovers(self, seconds=5.0, outputs=()):
        """What is still there `seconds` after a job's end: sentences, empty when nothing is."""
        poll_until(lambda: not self.processes(), seconds * PATIENCE)
        found = [f"process {p}" for p in self.processes()]
        ids = {os.path.basename(d) for d in self.job_dirs()}
        found += [f"cgroup {c}" for c in cgroups_of(ids)]
        for directory in self.job_dirs():
            found += [f"scratch {p}" for p in glob.glob(os.path.join(directory, "scratch", "*"))]
        found += [f"temporary {p}" for p in glob.glob(os.path.join(self.tmp, "*"))]
        for output in outputs:
            found += [f"half-written {p}" for p in half_written(output)]
        return found


def listeners():
    """(port, inode) of every listening TCP socket of this machine."""
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in _read(table).decode().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                found.append((int(fields[1].rsplit(":", 1)[1], 16), fields[9]))
    return found


def cgroups_of(job_ids):
    """Cgroup directories whose path names one of these jobs."""
    found = []
    for root, folders, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(root, f) for f in folders if any(job in f for job in job_ids if job)]
    return found


def remove_cgroups(job_ids):
    """Removes the control groups of these jobs, which have no processes any more; those that are still there."""
    for top in cgroups_of(job_ids):
        for group, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(group)
            except OSError:
                pass
    return cgroups_of(job_ids)


def half_written(output):
    """Files aside from the whole ones: AtomicFile's temporary names, beside and inside the output directory."""
    return [p for p in glob.glob(f"{output}*") + glob.glob(f"{output}/**/*", recursive=True)
            if ".tmp" in os.path.basename(p) or ".partial" in os.path.basename(p)]


def bindable(port):
    """True if nobody holds the port (a bind without SO_REUSEADDR succeeds or only TIME_WAIT is in the way)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
            s.listen(1)
            return True
        except OSError:
            return False


def said(process):
    """What a process of Home.start has printed so far."""
    with open(process.log, encoding="utf-8", errors="replace") as f:
        return f.read()


def read_vectors(path):
    """{word: tuple of floats} of a vectors.bin, strictly: raises ValueError on anything that is not whole."""
    with open(path, "rb") as f:
        data = f.read()
    end = data.index(b"\n")
    count, dim = map(int, data[:end].split())
    at, vectors = end + 1, {}
    for i in range(count):
        space = data.index(b" ", at)
        word = data[at:space].lstrip(b"\n").decode("utf-8", "surrogateescape")
        at = space + 1
        if at + 4 * dim > len(data):
            raise ValueError(f"{path}: ends inside vector {i} of {count}")
        vectors[word] = struct.unpack_from(f"<{dim}f", data, at)
        at += 4 * dim
    if data[at:].strip(b"\n"):
        raise ValueError(f"{path}: {len(data) - at} bytes after the last vector")
    return vectors


class JobsTest(unittest.TestCase):
    """Tests that run job files in a home of their own."""

    def setUp(self):
        self.home = Home()
        self.addCleanup(self.home.__exit__)

    def go(self, text, *arguments, env=None):
        """Runs a job to its end and sees that nothing is left: exit code, standard output, standard error."""
        done = self.home.run("run", self.home.write("job.yaml", text), *arguments, env=env)
        self.assertEqual(self.home.leftovers(), [])
        return done

    def start_job(self, text, line):
        """Starts a job and waits until a task of it has printed this line: the command's process."""
        process = self.home.start("run", self.home.write("job.yaml", text))
        self.addCleanup(process.kill)
        self.assertTrue(poll_until(lambda: f"| {line}" in said(process), 60 * PATIENCE), said(process))
        return process
