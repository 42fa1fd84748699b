"""A test double of Mesos-DNS as documented ("Service Naming"): a UDP name server for the tasks of a double of Marathon.

    _TASK._tcp.marathon.mesos, _PORT._TASK._tcp.marathon.mesos   SRV: TASK is an app's path, its parts reversed, with '-' between them
    TASK-….marathon.slave.mesos                                  A: the agent, also beside an SRV record that names it

What it says is what runs at the moment it is asked; `frozen` is what it said at some earlier one, as a real one does until it
refreshes."""

import socket
import struct
import threading
import zlib

A, SRV, IN = 1, 33, 1
NO_SUCH_NAME = 3


def task_name(app_id):
    return "-".join(reversed(app_id.strip("/").split("/")))


def encode_name(name):
    labels = [label.encode() for label in name.rstrip(".").split(".")]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def decode_name(message, at):
    labels = []
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode())
        at += 1 + message[at]
    return ".".join(labels).lower(), at + 1


def record(name, kind, data, ttl=60):
    return encode_name(name) + struct.pack("!HHIH", kind, IN, ttl, len(data)) + data


class MesosDns:
    def __init__(self, scheduler, port=0):
        self.scheduler = scheduler
        self.frozen = None
        self.asked = []  # (name, kind, how many records were the answer)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", port))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        """Nobody answers any more."""
        self.socket.close()

    def records(self):
        """{name: [(kind, value)]} of what runs: values are (port, target) and addresses."""
        if self.frozen is not None:
            return self.frozen
        found = {}
        with self.scheduler.lock:
            tasks = [task for app in self.scheduler.apps.values() for task in app.tasks.values() if task.state == "TASK_RUNNING"]
            for task in tasks:
                name = task_name(task.app.id)
                target = f"{name}-{zlib.crc32(task.id.encode()):08x}.marathon.slave.mesos"
                found.setdefault(target, []).append((A, socket.gethostbyname(task.agent.host)))
                for port, spec in zip(task.ports, task.app.definition.get("portDefinitions", ())):
                    names = [f"_{name}._tcp.marathon.mesos"]
                    if "name" in spec:
                        names.append(f"_{spec['name']}._{name}._tcp.marathon.mesos")
                    for one in names:
                        found.setdefault(one, []).append((SRV, (port, target)))
        return found

    def _serve(self):
        while True:
            try:
                message, peer = self.socket.recvfrom(4096)
            except OSError:
                return
            try:
                self.socket.sendto(self._answer(message), peer)
            except OSError:
                return

    def _answer(self, message):
        number, = struct.unpack_from("!H", message)
        name, end = decode_name(message, 12)
        kind, = struct.unpack_from("!H", message, end)
        records = self.records()
        answers, additional = [], []
        for what, value in records.get(name, ()):
            if what != kind:
                continue
            if what == A:
                answers.append(record(name, A, socket.inet_aton(value)))
                continue
            port, target = value
            answers.append(record(name, SRV, struct.pack("!HHH", 0, 0, port) + encode_name(target)))
            additional += [record(target, A, socket.inet_aton(address)) for _, address in records[target]]
        self.asked.append((name, kind, len(answers)))
        flags = 0x8580 | (0 if name in records else NO_SUCH_NAME)
        counts = struct.pack("!HHHHHH", number, flags, 1, len(answers), 0, len(additional))
        return counts + message[12:end + 4] + b"".join(answers) + b"".join(additional)
