"""A real PostgreSQL of a test's own: in memory where there is a memory file system, by a socket, as an unprivileged user."""
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

from server_harness import PATIENCE, poll_until


def programs():
    """The directory of the newest installed version; empty if there is none."""
    return os.path.dirname(max(glob.glob("/usr/lib/postgresql/*/bin/initdb"), default=""))


class Postgres:
    """Started by the constructor; `close` ends it and removes its files. address: where it listens, beside its socket."""

    def __init__(self, address=""):
        self._address = address
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None  # it refuses to run as root
        self.root = tempfile.mkdtemp(prefix="shoal-pg-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        if self._user:
            os.chown(self.root, self._user.pw_uid, self._user.pw_gid)
        self._run("initdb", "-D", self._data, "--no-sync", "--auth=trust", "--username=shoal", "--encoding=UTF8", "--locale=C")
        self._process = None
        self.start()
        self._run("createdb", "-h", self.root, "-U", "shoal", "shoal")

    @property
    def _data(self):
        return os.path.join(self.root, "data")

    @property
    def url(self):
        return f"postgres://shoal@/shoal?host={self.root}"

    def _start(self, program, *arguments):
        def leave():
            if self._user:
                os.setgroups([])
                os.setgid(self._user.pw_gid)
                os.setuid(self._user.pw_uid)

        with open(os.path.join(self.root, "log"), "ab") as log:
            return subprocess.Popen([os.path.join(programs(), program), *arguments], cwd="/", preexec_fn=leave,  # pylint: disable=subprocess-popen-preexec-fn
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": "/usr/bin:/bin"})

    def _run(self, program, *arguments):
        code = self._start(program, *arguments).wait(60 * PATIENCE)
        if code != 0:
            with open(os.path.join(self.root, "log"), encoding="utf-8") as log:
                raise AssertionError(f"{program} ended with {code}: {log.read()[-2000:]}")

    def start(self):
        self._process = self._start("postgres", "-D", self._data, "-c", f"unix_socket_directories={self.root}", "-c",
                                    f"listen_addresses={self._address}", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=80")
        socket = os.path.join(self.root, ".s.PGSQL.5432")
        poll_until(lambda: os.path.exists(socket) and self._ready(), 60 * PATIENCE, 0.02)

    def _ready(self):
        return self._start("pg_isready", "-h", self.root, "-U", "shoal", "-d", "postgres").wait(20) == 0

    def stop(self):
        """At once, as a crash does."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(30)

    def close(self):
        if self._process is not None and self._process.poll() is None:
            self.stop()
        shutil.rmtree(self.root, ignore_errors=True)
        for _ in range(50):
            if not os.path.exists(self.root):
                return
            time.sleep(0.05)  # files of ending processes
            shutil.rmtree(self.root, ignore_errors=True)
