"""The port adversary: processes of this and of another user that grab every port they can get, with plain, SO_REUSEADDR and
SO_REUSEPORT sockets, listening or only bound, while jobs of gRPC, ZeroMQ and plain-socket programs start: with the libraries
where Debian's python3-grpcio and python3-zmq are there, and with sockets that are opened as these open theirs.

A job is a server and a client that asks it for a while. What must hold: no job fails (its tasks are never restarted for ends of
their own), a client that was answered by somebody else is stopped within 2 s, and whoever took the port is named in the events.

Everything happens in a network namespace of its own, so that nobody else of this machine is robbed, and in which there are few
ports to lease, so that the robbers meet them often. Run as a program it is one robber: NAME USER OPTION LISTENS RATE.
"""
import collections
import ctypes
import fcntl
import os
import random
import re
import resource
import select
import socket
import struct
import subprocess
import sys
import threading
import time

# What the kernel keeps for itself here; Shoal leases from what is left above 10000: some 4,500 ports.
_EPHEMERAL = "10500 61500"
_PORTS = list(range(10000, 10500)) + list(range(61501, 65536))
_HELD = 600  # ports by one robber at a time

# name, of another user, socket options, listens, ports tried a second. "thief" alone gets past every lease of its own user.
ROBBERS = [
    ("plain", True, "", True, 6000),
    ("silent", False, "", False, 8000),
    ("address", True, "SO_REUSEADDR", True, 5000),
    ("bound", False, "SO_REUSEADDR", False, 4000),
    ("thief", False, "SO_REUSEPORT", True, 1200),
]
# How a program listens: (options, `plain` in the job file). gRPC sets both, ZeroMQ the address' one alone.
KINDS = {"grpc": ("SO_REUSEADDR SO_REUSEPORT", False), "reuseport": ("SO_REUSEPORT", False),
         "zeromq": ("SO_REUSEADDR", False), "plain": ("", True)}

# Their libraries, by kind; Debian's Python has them.
LIBRARIES = {"grpc-library": "grpc", "zeromq-library": "zmq"}
_SYSTEM_PYTHON = "/usr/bin/python3"

_SERVER = """\
import os, socket, sys
listener = socket.socket()
for option in sys.argv[1:]:
    listener.setsockopt(socket.SOL_SOCKET, getattr(socket, option), 1)
listener.bind(("127.0.0.1", int(os.environ["SHOAL_PORT"])))
listener.listen(64)
me = os.path.basename(os.environ["SHOAL_JOB_DIR"]).encode()
while True:
    with listener.accept()[0] as peer:
        peer.sendall(me)
"""
_SERVERS = {"grpc-library": """\
import os, sys
from concurrent import futures
import grpc
me = os.path.basename(os.environ["SHOAL_JOB_DIR"]).encode()
handlers = {"Who": grpc.unary_unary_rpc_method_handler(lambda request, context: me)}
server = grpc.server(futures.ThreadPoolExecutor(2))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("shoal.Test", handlers),))
server.add_insecure_port("127.0.0.1:" + os.environ["SHOAL_PORT"])
server.start()
server.wait_for_termination()
""", "zeromq-library": """\
import os, zmq
server = zmq.Context().socket(zmq.REP)
server.bind("tcp://127.0.0.1:" + os.environ["SHOAL_PORT"])
while True:
    server.recv()
    server.send(os.path.basename(os.environ["SHOAL_JOB_DIR"]).encode())
"""}
_ASK = """\
def ask():
    try:
        with socket.create_connection((host, int(port)), timeout=0.3) as peer:
            return peer.recv(200).decode()
    except OSError:
        return ""
"""
_ASKS = {"grpc-library": """\
import grpc
def ask():
    try:
        with grpc.insecure_channel(host + ":" + port) as channel:
            return channel.unary_unary("/shoal.Test/Who")(b"", timeout=0.5).decode()
    except grpc.RpcError:
        return ""
""", "zeromq-library": """\
import zmq
context = zmq.Context()
def ask():
    with context.socket(zmq.REQ) as peer:
        peer.linger, peer.rcvtimeo = 0, 300
        peer.connect("tcp://" + host + ":" + port)
        peer.send(b"")
        try:
            return peer.recv().decode()
        except zmq.Again:
            return ""
"""}
# Asks its server for 0.3 s, and for half a second more whenever somebody else has answered.
_CLIENT = """\
import json, os, socket, sys, time
host, port = json.loads(os.environ["SHOAL_CLUSTER"])["roles"]["server"][0].split(":")
me = os.path.basename(os.environ["SHOAL_JOB_DIR"])
#ASK#
give_up = time.monotonic() + 20
until = crossed = None
while True:
    answer, now = ask(), time.monotonic()
    if answer == me and until is None:
        until = now + 0.3
    elif answer not in ("", me):
        crossed = crossed or now
        until = now + 0.5
        print("crossed for", round(now - crossed, 3), "by", answer, flush=True)
    if until is None and now > give_up:
        sys.exit("nobody answered")
    if until is not None and now > until:
        sys.exit(0)
    time.sleep(0.01)  # poll
"""
_JOB = """\
name: start-{number}
roles:
  server:
    follows: client
    ports: [{port}]
    restart: {{when: never}}
    command: [{python}, {server}{options}]
  client:
    restart: {{when: never}}
    command: [{python}, {client}]
limits: {{stop_grace: 1s}}
"""


def enter_namespace():
    """Moves this process into a network namespace of its own; why not, or ""."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    new_user = 0 if user == 0 else 0x10000000  # CLONE_NEWUSER
    if libc.unshare(0x40000000 | new_user) != 0:  # CLONE_NEWNET
        return f"no network namespace of its own: {os.strerror(ctypes.get_errno())}"
    if new_user:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as f:
                f.write(text)
    with socket.socket() as any_socket:
        request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)  # IFF_UP | IFF_RUNNING
        fcntl.ioctl(any_socket, 0x8914, request)  # SIOCSIFFLAGS
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w", encoding="ascii") as f:
        f.write(_EPHEMERAL)
    return ""


def rob(user, option, listens, rate):
    """Never returns: binds port after port, holds each for a while, answers who connects."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    # A thief is to be named: one that answers stays as long as two looks at the listeners may take.
    seconds = 1.5 if listens else 0.3
    held = collections.deque()  # (when to let it go, socket)
    poll = select.epoll()
    by_number = {}
    batch = max(1, rate // 100)
    while True:
        begin = time.monotonic()
        while held and held[0][0] < begin:
            one = held.popleft()[1]
            by_number.pop(one.fileno(), None)
            one.close()
        for port in random.sample(_PORTS, min(batch, _HELD - len(held))):
            one = socket.socket()
            try:
                if option:
                    one.setsockopt(socket.SOL_SOCKET, getattr(socket, option), 1)
                one.bind(("127.0.0.1", port))
                if listens:
                    one.listen(8)
                    one.setblocking(False)
                    poll.register(one, select.EPOLLIN)
                    by_number[one.fileno()] = one
                held.append((begin + seconds, one))
            except OSError:
                one.close()
        left = begin + 0.01
        while (wait := left - time.monotonic()) > 0:
            for number, _ in poll.poll(wait):
                try:
                    with by_number[number].accept()[0] as peer:
                        peer.sendall(b"robber")
                except (KeyError, OSError):
                    pass


class Robbers:
    """All robbers, as processes, while it is entered. `left_out`: what could not be had."""

    def __enter__(self):
        root = os.geteuid() == 0
        self.left_out = [] if root else ["robbers of another user (only root can have them)"]
        self.processes = [
            subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__), name, "65534" if other else "0", option,
                              str(int(listens)), str(rate)])
            for name, other, option, listens, rate in ROBBERS if root or not other]
        return self

    def __exit__(self, *error):
        self.died = [p.args[3] for p in self.processes if p.poll() is not None]
        for process in self.processes:
            process.kill()
            process.wait()


class Result:
    """What became of the starts."""

    def __init__(self):
        self.failed = []  # (job, what it said)
        self.unnamed = []  # jobs whose client was answered by somebody else, without a theft in the events
        self.thefts = 0
        self.crossed = 0
        self.jobs_met = []  # jobs whose client was answered by another job's server
        self.longest = 0.0  # seconds that a client was answered by somebody else

    def take(self, job, code, said):
        thefts = len(re.findall(r"its port \d+ is (?:taken|held)", said))
        met = re.findall(r"crossed for ([\d.]+) by (\S+)", said)
        crossings = [float(seconds) for seconds, _ in met]
        if any(who != "robber" for _, who in met):
            self.jobs_met.append((job, said))
        self.thefts += thefts
        self.crossed += bool(crossings)
        self.longest = max([self.longest, *crossings])
        if code != 0:
            self.failed.append((job, said))
        if crossings and not thefts:
            self.unnamed.append((job, said))

    def __str__(self):
        return (f"{self.thefts} thefts, {self.crossed} jobs with a client that a robber answered, for {self.longest:.2f} s at the "
                f"longest, {len(self.jobs_met)} that another job did; {len(self.failed)} failed")


def _libraries():
    """Kinds whose library can be had, and why others cannot."""
    there, missing = [], []
    for kind, module in LIBRARIES.items():
        found = subprocess.run([_SYSTEM_PYTHON, "-c", f"import {module}"], stderr=subprocess.DEVNULL, check=False).returncode == 0
        (there if found else missing).append(kind)
    return there, missing


def _write_programs(home, kind):
    """Of one kind: python and the files, as the job file's commands have them."""
    home.write(f"server-{kind}.py", _SERVERS.get(kind, _SERVER))
    home.write(f"client-{kind}.py", _CLIENT.replace("#ASK#", _ASKS.get(kind, _ASK)))


def _run(home, kind, number):
    options, plain = KINDS.get(kind, ("", False))
    python = _SYSTEM_PYTHON if kind in LIBRARIES else f"{sys.executable}, -S"
    text = _JOB.format(number=number, port="{name: main, plain: true}" if plain else "main", python=python,
                       server=home.path(f"server-{kind}.py"), client=home.path(f"client-{kind}.py"),
                       options="".join(f", {one}" for one in options.split()))
    name = f"{kind}-{number}"
    code, out, err = home.run("run", home.write(f"{name}.yaml", text), seconds=90)
    return name, code, out + err


def starts(home, count, together):
    """Runs `count` jobs, so many at a time, among the robbers."""
    libraries, missing = _libraries()
    if missing:
        print("left out:", ", ".join(missing), file=sys.stderr)
    kinds = [*KINDS, *libraries]
    for kind in kinds:
        _write_programs(home, kind)
    result, numbers, lock = Result(), iter(range(count)), threading.Lock()

    def work():
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            done = _run(home, kinds[number % len(kinds)], number)
            with lock:
                result.take(*done)

    threads = [threading.Thread(target=work) for _ in range(together)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return result


if __name__ == "__main__":
    rob(int(sys.argv[2]), sys.argv[3], sys.argv[4] == "1", int(sys.argv[5]))
