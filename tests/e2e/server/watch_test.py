"""Followers of `shoal server` that come back, and WebSockets whose user loses rights."""
import base64
import json
import os
import socket
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import PATIENCE, Server, job_text  # noqa: E402  pylint: disable=wrong-import-position

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class Socket:
    """A WebSocket to /watch that sends and receives short messages (RFC 6455)."""

    def __init__(self, server, token):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=60 * PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /api/v1/watch HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUpgrade: websocket\r\n"
                             f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
                             f"Sec-WebSocket-Protocol: shoal.v1\r\nAuthorization: Bearer {token}\r\n\r\n").encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._read(1)
        assert head.startswith(b"HTTP/1.1 101 "), head

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.socket.close()

    def _read(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the server has closed")
            data += piece
        return data

    def _write(self, kind, data):
        length = struct.pack("!B", 0x80 | len(data)) if len(data) < 126 else struct.pack("!BH", 0x80 | 126, len(data))
        self.socket.sendall(bytes([0x80 | kind]) + length + bytes(4) + data)

    def send(self, **message):
        self._write(TEXT, json.dumps(message).encode())

    def receive(self):
        """The next message, or the code with which the server closes."""
        while True:
            kind, length = self._read(2)
            if length == 126:
                length, = struct.unpack("!H", self._read(2))
            elif length == 127:
                length, = struct.unpack("!Q", self._read(8))
            data = self._read(length)
            if kind & 15 == PING:
                self._write(PONG, data)
            elif kind & 15 == CLOSE:
                return struct.unpack("!H", data[:2])[0]
            else:
                return json.loads(data)

    def receive_until_done(self, number):
        """The messages until the subscription has ended, a refusal or the closing."""
        messages = []
        while True:
            messages.append(self.receive())
            if isinstance(messages[-1], int) or "error" in messages[-1] or messages[-1] == {"done": number}:
                return messages


class WatchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.server.start()
        cls.job = cls.server.submit(job_text("watched", "echo hello"))
        cls.server.wait_for_end(cls.job)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.process.poll() is None, "the server has ended"
        cls.server.__exit__()

    def test_streams_of_ended_jobs_end_for_clients_that_have_all_events(self):
        last = self.server.get(f"/jobs/{self.job}").json["last_seq"]
        for target, end in ((f"/jobs/{self.job}/stream", "event: end"), (f"/jobs/{self.job}/stream?logs=true", "hello"),
                            (f"/jobs/{self.job}/events", "event: end")):
            with self.subTest(target):
                reply = self.server.request("GET", target, seconds=10,
                                            headers={"Last-Event-ID": str(last), "Accept": "text/event-stream"})
                self.assertIn(end, reply.body.decode())
                self.assertNotIn("event: event", reply.body.decode())

    def test_revoked_token_reads_nothing_more(self):
        self.server.make_user("vera", "default", "viewer")
        made = self.server.post("/tokens", {"user": "vera", "name": "page"}).json
        with Socket(self.server, made["token"]) as page:
            page.send(subscribe=1, job=self.job)
            self.assertEqual(page.receive_until_done(1)[-1], {"done": 1})
            self.assertEqual(self.server.request("DELETE", f"/tokens/{made['id']}").status, 204)
            page.send(subscribe=2, job=self.job, logs=True)
            self.assertEqual(page.receive_until_done(2), [1008])

    def test_open_subscription_ends_with_the_membership(self):
        token = self.server.make_user("mona", "default", "viewer")
        with Socket(self.server, token) as page:
            page.send(subscribe=1, after="now")
            self.assertEqual(self.server.request("DELETE", "/teams/default/members/mona").status, 204)
            began = time.monotonic()
            messages = page.receive_until_done(1)
            self.assertEqual(messages[-1], 1008)
            self.assertLess(time.monotonic() - began, 30 * PATIENCE)

    def test_numbers_of_ended_subscriptions_can_be_used_again(self):
        with Socket(self.server, self.server.admin) as page:
            for _ in range(3):
                page.send(subscribe=1, job=self.job)
                self.assertEqual(page.receive_until_done(1)[-1], {"done": 1})

    def test_wrong_fields_are_refused(self):
        for wrong in ({"job": 5}, {"job": self.job, "logs": "true"}, {"job": self.job, "attempt": -1},
                      {"job": self.job, "attempt": "x"}, {"job": self.job, "from": ["a"]}, {"job": self.job, "task": 7},
                      {"after": 5}, {"team": ["x"], "after": "now"}, {"more": 1}):
            with self.subTest(wrong), Socket(self.server, self.server.admin) as page:
                page.send(subscribe=1, **wrong)
                message = page.receive()
                self.assertEqual(message.get("status"), 422, message)
                page.send(subscribe=1, job=self.job)  # the number is free
                self.assertEqual(page.receive_until_done(1)[-1], {"done": 1})

    def test_teams_that_are_not_there(self):
        digest = "a" * 64
        for team in ("nosuch", "../outside", ".", "/tmp"):
            with self.subTest(team):
                reply = self.server.post("/jobs", {"file": job_text(), "team": team})
                self.assertEqual(reply.status, 404, reply)
                self.assertIn("no team", reply.detail)
                self.assertEqual(self.server.post("/files/missing", {"digests": [digest], "team": team}).status, 404)
        self.assertFalse(os.path.exists(os.path.join(self.server.state, "outside")))


if __name__ == "__main__":
    unittest.main()
