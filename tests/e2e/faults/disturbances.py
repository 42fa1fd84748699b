"""What the fault suite does to a job: each class prepares it before the job starts, does it at the drawn moment, and removes
what it has prepared."""
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import threading

import harness
import hosts

KILLED = ("worker", "server", "launcher", "coordinator", "controller", "controller-keep")
# Others than the job's own processes stop something: SIGTERM to a launcher, to all processes of a task, or to a server's
# program alone, as an engine's eviction or a person sends it; SIGSTOP for longer than anybody is waited for; `shoal stop`.
TERMINATED = ("term-launcher", "term-task", "term-server")
PAUSED = ("stop-worker", "stop-server", "stop-launcher", "stop-coordinator", "stop-controller")
FULL_SECONDS = ERROR_SECONDS = 0.4
SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "io_shim.c")
FILESYSTEM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "faulty_fs.c")


class Disturbance:
    """`landed` says of the strike what a person needs to repeat it by hand."""
    must_succeed = False  # nothing was lost
    true_words = ()       # one of them is in the reason of a job that failed
    journal_counts = False  # where verdict.json could not be written (docs/adr/0141)
    cancels = None        # the reason, where a job may be cancelled
    refusal = ()          # one of them is said by a command that could not make a job
    arguments = ()        # of `shoal run`
    extra_seconds = 0     # how much longer than otherwise the job may take

    def __init__(self, victim, home, rng, pause):
        self.victim, self.home, self.rng, self.pause = victim, home, rng, pause
        self.landed = ""

    def prepare(self):
        pass

    def start(self, scenario):
        return scenario.start(*self.arguments)

    def targets(self, process):
        """What can be hit now, in an order that is always the same: the command, where nothing else is said."""
        return [process] if process.poll() is None else []

    def strike(self, target):
        """ProcessLookupError where there was nothing to hit any more."""
        raise NotImplementedError

    def recover(self):
        """Called when the command has ended."""

    def check(self):
        """Sentences about what else went wrong."""
        return []

    def close(self):
        pass


class OnProcess(Disturbance):
    """A signal to one process, or to a task's."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.must_succeed = self.victim in PAUSED
        self.kind = self.victim.split("-")[self.victim in TERMINATED + PAUSED].replace("task", "launcher")
        self.true_words = (self.kind, "signal 9", "sigkill", "killed", "lost")

    def targets(self, _process):
        found = [p for p in self.home.processes() if p.kind == self.kind]
        # A program is the child of a launcher (or of its namespace's first process), not what it started itself; and any
        # process that has just forked has a copy with its own arguments, whose death changes nothing.
        of_kind = {p.pid for p in found}
        return sorted((p for p in found if p.ppid not in of_kind), key=lambda p: p.pid)

    def strike(self, target):
        self.landed = str(target)
        if self.victim in PAUSED:
            os.kill(target.pid, signal.SIGSTOP)
            harness.poll_until(lambda: harness.read_process(target.pid) is None, self.pause, pause=0.1)
            with contextlib.suppress(ProcessLookupError):
                os.kill(target.pid, signal.SIGCONT)
        elif self.victim in TERMINATED:
            tree = [target.pid]
            for one in sorted(self.home.processes(), key=lambda p: p.pid) if self.victim == "term-task" else ():
                if one.ppid in tree:
                    tree.append(one.pid)
            for pid in reversed(tree):  # the program may have ended, and its launcher with it, before all have been told
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
        else:
            os.kill(target.pid, signal.SIGKILL)


class FrozenCommand(Disturbance):
    """`shoal run` stands still for up to 3 s."""
    must_succeed = True
    extra_seconds = 5

    def strike(self, target):
        seconds = self.rng.uniform(0.1, 3)
        self.landed = f"for {seconds:.2f} s"
        os.kill(target.pid, signal.SIGSTOP)
        threading.Event().wait(seconds)
        os.kill(target.pid, signal.SIGCONT)


def fill(place, seconds):
    """Leaves no room on the filesystem of this directory for so long."""
    filler = os.path.join(place, "filler")
    with open(filler, "wb", buffering=0) as f:
        for size in (1 << 20, 1 << 12):
            with contextlib.suppress(OSError):
                while True:
                    f.write(b"x" * size)
    threading.Event().wait(seconds)
    os.remove(filler)


class FullDisk(Disturbance):
    """The disk of the state home, a tmpfs, has no room for 0.4 s."""
    must_succeed = journal_counts = True
    extra_seconds = 10
    refusal = ("No space left on device", "disk is full")

    def prepare(self):
        os.mkdir(self.home.home)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=0700", "none", self.home.home], check=True)

    def strike(self, _target):
        fill(self.home.home, FULL_SECONDS)
        self.landed = "filled"

    def close(self):
        if self.home.keep:
            shutil.copytree(self.home.home, self.home.path("home-kept"), symlinks=True, ignore_dangling_symlinks=True)
        subprocess.run(["umount", "-l", self.home.home], check=False)


class FaultyDirectory:
    """A directory on which calls fail by order of the file "switch" in `control` (faulty_fs.c). Needs root, and libfuse3-dev."""

    def __init__(self, place, control):
        self.place, lower, program = place, os.path.join(control, "lower"), os.path.join(control, "faulty_fs")
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=True).stdout.split()
        subprocess.run(["cc", "-O1", "-o", program, FILESYSTEM, *flags], check=True)
        os.makedirs(place, 0o700)
        os.mkdir(lower, 0o700)
        # Relative names and no environment: what carries the home's name is taken for a process of a job.
        words = ["./faulty_fs", "lower", os.path.relpath(place, control), "."]
        self.process = subprocess.Popen(words, cwd=control, env={}, stderr=subprocess.DEVNULL)
        if not harness.poll_until(lambda: os.path.ismount(place), 10 * harness.PATIENCE):
            raise RuntimeError(f"there is no filesystem at {place}")

    def close(self):
        subprocess.run(["umount", "-l", self.place], check=False)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()


class IoError(Disturbance):
    """Calls on files of the state home fail with EIO, once or for 0.4 s, in processes of a drawn kind. On this machine the engine
    gives its processes a clean environment, so the loader takes a library from an /etc of the job's own; on clusters, whose
    programs are linked statically and started by others, the directory itself fails."""
    extra_seconds = 20
    journal_counts = True
    true_words = refusal = ("input/output error", "i/o error")
    KINDS = ("controller", "coordinator", "launcher", "worker", "server", "any", "any")
    CALLS = ("open", "read", "write", "sync", "rename", "any", "any")

    directory = None

    def prepare(self):
        kind, call, mode = self.rng.choice(self.KINDS), self.rng.choice(self.CALLS), self.rng.choice(("once", "all"))
        self.order = f"{kind} {call} {mode} {self.home.home}/\n"
        if self.home.engine.name != "local":
            self.directory = FaultyDirectory(self.home.home, self.home.root)
            return
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.home.path("io.so"), SHIM, "-ldl"], check=True)
        os.mkdir(self.home.path("etc"))
        self.home.write("etc/ld.so.preload", self.home.path("io.so") + "\n")

    def start(self, scenario):
        if self.directory:
            return super().start(scenario)
        binary = self.home.binary
        inside = f"mount -t overlay overlay -o lowerdir={self.home.path('etc')}:/etc /etc && exec {shlex.quote(binary)} \"$@\""
        self.home.binary = self.home.write("shoal", f"#!/bin/sh\nexec unshare -m sh -c {shlex.quote(inside)} shoal \"$@\"\n")
        os.chmod(self.home.binary, 0o755)
        try:
            return super().start(scenario)
        finally:
            self.home.binary = binary

    def close(self):
        if self.directory:
            if self.home.keep:
                shutil.copytree(self.home.home, self.home.path("home-kept"), symlinks=True, ignore_dangling_symlinks=True)
            self.directory.close()

    def strike(self, target):
        hits = switch_on(self.home.root, self.order, lambda: target.poll() is not None)
        self.landed = f"{self.order.strip()}: {len(hits)} calls failed, {'; '.join(hits[:6])}"


def switch_on(control, order, over):
    """Has calls fail by this order until one has, or for 0.4 s, or until over(): the lines of the calls that failed. ProcessLookupError
    if none did."""
    switch, hits = os.path.join(control, "switch"), os.path.join(control, "hits")
    with contextlib.suppress(FileNotFoundError):
        os.remove(hits)
    with open(switch + ".new", "w", encoding="utf-8") as f:
        f.write(order)
    os.rename(switch + ".new", switch)
    if " once " in order:
        harness.poll_until(lambda: not os.path.exists(switch) or over(), 60, pause=0.05)
    else:
        threading.Event().wait(ERROR_SECONDS)
    with contextlib.suppress(FileNotFoundError):
        os.remove(switch)
    try:
        with open(hits, encoding="utf-8") as f:
            return f.read().splitlines()
    except FileNotFoundError:
        raise ProcessLookupError(order) from None


class LinkDown(Disturbance):
    """The job's tasks are on hosts of their own (network namespaces, of which a double of Marathon knows); one host's link
    passes nothing for up to 8 s, or never again."""
    arguments = ("--engine", "marathon")
    lost = None           # the host
    # A coordinator that was cut off from its controller stops the job, if it can still write its verdict.
    cancels = "no controller was connected"
    true_words = ("lost", "heartbeat", "heard", "reach", "connection", "coordinator", "gather", "did not join")

    def prepare(self):
        self.hosts = hosts.Hosts(f"{os.getpid()}-{id(self):x}")
        self.seconds = None if self.rng.random() < 0.3 else self.rng.uniform(0.5, 8)
        self.must_succeed = self.seconds is not None
        self.extra_seconds = 20 if self.seconds is not None else 120

    def start(self, scenario):
        binary = self.home.binary
        self.home.binary = self.home.write("shoal", f"#!/bin/sh\nexec {self.hosts.enter} {shlex.quote(binary)} \"$@\"\n")
        os.chmod(self.home.binary, 0o755)  # for all that follow, too: only there is the way to the hosts
        return self.home.start("run", scenario.file, *self.arguments, env={"SHOAL_MARATHON_URL": self.hosts.url})

    def targets(self, _process):
        return range(len(self.hosts.names))

    def strike(self, target):
        self.landed = f"host {target}, for " + (f"{self.seconds:.2f} s" if self.seconds is not None else "good")
        self.hosts.set_link(target, False)
        if self.seconds is not None:
            threading.Event().wait(self.seconds)
            self.hosts.set_link(target, True)
        else:
            self.lost = target
            self.hosts.tell(target, "lost")

    def recover(self):
        """What waits on an agent that cannot be reached goes when that is back."""
        if self.lost is not None:
            self.hosts.set_link(self.lost, True)
            self.hosts.tell(self.lost, "back")

    def close(self):
        self.hosts.close()


class StopJob(Disturbance):
    """A person says `shoal stop`."""
    extra_seconds = 5

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.wrong = []

    def targets(self, _process):
        return [os.path.basename(d) for d in self.home.job_dirs()]

    def strike(self, target):
        now = ["--now"] if self.rng.random() < 0.3 else []
        def stop():
            self.code, out, err = self.home.run("stop", target, *now)
            self.said = out + err
            return self.code != 4  # the job's directory is made before its record
        harness.poll_until(stop, 5 * harness.PATIENCE, pause=0.05)
        self.landed = " ".join(["shoal stop", target, *now])
        left = [p for p in self.home.processes() if p.kind != "controller"]
        if self.code != 0:
            self.wrong.append(f"{self.landed}: exit code {self.code}: {self.said[-300:]}")
        elif left:
            self.wrong.append(f"when shoal stop had returned there was still {left}")

    def check(self):
        return self.wrong


class KilledCommand(Disturbance):
    """`shoal run` gets SIGKILL, and a person says `shoal stop` after up to 3 s: nothing is left when that has returned."""
    extra_seconds = 5
    cancels = ""  # whatever reason

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.stop = StopJob(*arguments)

    def strike(self, target):
        os.kill(target.pid, signal.SIGKILL)
        target.wait()
        threading.Event().wait(self.rng.uniform(0, 3))
        jobs = self.stop.targets(target)
        if not jobs:
            raise ProcessLookupError("no job was made")
        self.stop.strike(jobs[-1])
        self.landed = f"kill -9, then {self.stop.landed}"

    def check(self):
        return self.stop.check()


CLASSES = {"frozen-command": FrozenCommand, "disk-full": FullDisk, "io-error": IoError, "link-down": LinkDown,
           "stop-job": StopJob, "killed-command": KilledCommand}
ALL = KILLED + TERMINATED + PAUSED + tuple(CLASSES)
