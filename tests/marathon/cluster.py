"""Mesos as Marathon sees it: agents with resources, and tasks that are processes of this machine."""

import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def processes_of(task_id):
    """All that carry the task's id in their environment, as all of a control group."""
    mark = f"MESOS_TASK_ID={task_id}".encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            environ = pathlib.Path("/proc", entry, "environ").read_bytes()
        except OSError:
            continue
        if mark in environ.split(b"\0"):
            yield int(entry)


def signal_all(task_id, number):
    found = list(processes_of(task_id))
    for pid in found:
        try:
            os.kill(pid, number)
        except OSError:
            pass
    return bool(found)


class Agent:
    def __init__(self, host, number):
        self.id = f"agent-{number}"
        self.free = {"cpus": 64.0, "mem": 65536.0, "gpus": 4}
        self.reachable = True
        self.attributes = {"rack": f"r{number}"}
        self.move(host)

    def move(self, host, enter=()):
        """Its address, and the command by which its tasks are started in a network of its own."""
        self.host, self.enter = host, enter
        self.attributes.update({"hostname": host, "@hostname": host})

    def take(self, app, sign):
        for name in self.free:
            self.free[name] -= sign * app.definition.get(name, 0)


class Task:
    """One launch of an app's instance; `ended` is called once, with the state and a sentence."""

    def __init__(self, app, agent, sandboxes, ended):
        name = app.id.strip("/").replace("/", "_")
        self.id = f"{name}.instance-{random.getrandbits(64):016x}._app.1"
        self.app, self.agent, self.ended = app, agent, ended
        self.version = app.version
        self.staged = time.time()
        self.state = "TASK_STAGING"
        self.killing = self.killed_for_good = self.expunged = False
        self.over = threading.Event()
        self.health, self.ill = [], False
        ports = app.definition.get("portDefinitions", ())
        required = app.definition.get("requirePorts", False)
        self.ports = [one.get("port", 0) if required and one.get("port") else free_port() for one in ports]
        self.sandbox = sandboxes / self.id
        self.sandbox.mkdir(parents=True)
        agent.take(app, 1)

    def environment(self):
        env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "HOST": self.agent.host,
               "MESOS_TASK_ID": self.id, "MESOS_SANDBOX": str(self.sandbox), "MARATHON_APP_ID": self.app.id,
               "MARATHON_APP_VERSION": self.version, "PORTS": ",".join(map(str, self.ports)),
               "MARATHON_APP_RESOURCE_CPUS": str(self.app.definition.get("cpus", 1)),
               "MARATHON_APP_RESOURCE_MEM": str(self.app.definition.get("mem", 128)),
               "LIBPROCESS_IP": self.agent.host}
        for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                env[name] = os.environ[name]
        for i, (port, spec) in enumerate(zip(self.ports, self.app.definition.get("portDefinitions", ()))):
            env[f"PORT{i}"] = str(port)
            if "name" in spec:
                env["PORT_" + spec["name"].upper().replace("-", "_")] = str(port)
        if self.ports:
            env["PORT"] = str(self.ports[0])
        for name, value in self.app.definition.get("labels", {}).items():
            env["MARATHON_APP_LABEL_" + re.sub("[^A-Z0-9_]", "_", name.upper())] = value
        secrets = self.app.definition.get("secrets", {})
        for name, value in self.app.definition.get("env", {}).items():
            env[name] = value if isinstance(value, str) else f"value of {secrets[value['secret']]['source']}"
        return env

    def fetch(self):
        """Mesos' fetcher, of files of this machine: a copy in the sandbox, unpacked if it is an archive."""
        for artifact in self.app.definition.get("fetch", ()):
            path = artifact["uri"].removeprefix("file://")
            target = self.sandbox / artifact.get("destPath", os.path.basename(path))
            shutil.copy(path, target)
            target.chmod(0o755 if artifact.get("executable") else 0o644)
            if artifact.get("extract", True) and re.search(r"\.(tar(\.gz)?|tgz|zip)$", target.name):
                shutil.unpack_archive(target, self.sandbox)

    def start(self):
        self.state = "TASK_RUNNING"
        self.fetch()
        with open(self.sandbox / "stdout", "wb") as out, open(self.sandbox / "stderr", "wb") as err:
            self.process = subprocess.Popen([*self.agent.enter, "/bin/sh", "-c", self.app.definition["cmd"]], cwd=self.sandbox,
                                            stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=self.environment(),
                                            start_new_session=True)
        threading.Thread(target=self._wait, daemon=True).start()
        for check in self.app.definition.get("healthChecks", ()):
            threading.Thread(target=self._check, args=(check,), daemon=True).start()

    # ---- health, as Mesos' executor sees it ----

    def _is_well(self, check):
        """One question: the command's end with 0 in time. Who takes longer is killed."""
        asked = subprocess.Popen(["/bin/sh", "-c", check["command"]["value"]], cwd=self.sandbox, env=self.environment(),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return asked.wait(check["timeoutSeconds"]) == 0
        except subprocess.TimeoutExpired:
            asked.kill()
            asked.wait()
            return False

    def _check(self, check):
        begun, failures = time.monotonic(), 0
        wait = check.get("delaySeconds", 0)  # 15 in Mesos: tests are not to wait
        while not self.over.wait(wait) and not self.killing:
            wait = check["intervalSeconds"]
            well = self._is_well(check)
            self.health.append(well)
            failures = 0 if well else failures + 1
            early = time.monotonic() - begun < check["gracePeriodSeconds"] and True not in self.health
            if failures >= check["maxConsecutiveFailures"] and not early and not self.over.is_set():
                self.ill = True
                return self.kill()

    def _wait(self):
        code = self.process.wait()
        while signal_all(self.id, signal.SIGKILL):  # the agent destroys the container
            time.sleep(0.005)
        self.agent.take(self.app, -1)
        if self.killing:
            state, text = "TASK_KILLED", "Container terminated with signal" if code < 0 else "Command terminated"
            text = "Task failed its health check" if self.ill else text
        elif code == 0:
            state, text = "TASK_FINISHED", "Command exited with status 0"
        else:
            how = f"terminated with signal {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
            state, text = "TASK_FAILED", f"Command {how}"
        self.state = state
        self.over.set()
        self.ended(self, state, text)

    def kill(self):
        """SIGTERM to the command, SIGKILL to everything after the grace."""
        if self.killing:
            return
        self.killing = True
        grace = self.app.definition.get("taskKillGracePeriodSeconds", 3)
        try:
            os.kill(self.process.pid, signal.SIGTERM)
        except OSError:
            pass
        threading.Thread(target=lambda: self.over.wait(grace) or signal_all(self.id, signal.SIGKILL),
                         daemon=True).start()
