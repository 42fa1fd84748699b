"""Bad input to `shoal server`: each gets an answer of one sentence, and the server goes on."""
import hashlib
import os
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import PATIENCE, Server, job_text, poll_until  # noqa: E402  pylint: disable=wrong-import-position


class HostileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.process.poll() is None, "the server has ended"
        cls.server.__exit__()

    def raw(self, data, seconds=30):
        """What the server answers to these bytes until it closes the connection."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=seconds * PATIENCE) as s:
            answer = b""
            try:
                s.sendall(data)
                while piece := s.recv(65536):
                    answer += piece
            except OSError:
                pass
            return answer

    def test_slow_header(self):
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60 * PATIENCE) as s:
            s.sendall(b"GET /healthz HTTP/1.1\r\n")
            ended = poll_until(lambda: self._drip(s), 60 * PATIENCE, 0.5)
        self.assertTrue(ended)
        self.assertLess(time.monotonic() - began, 30 * PATIENCE)

    @staticmethod
    def _drip(s):
        """Sends one more byte; true when the server has closed."""
        try:
            s.sendall(b"x")
            s.setblocking(False)
            return s.recv(1) is not None
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            s.setblocking(True)

    def test_huge_bodies(self):
        for target, token in (("/jobs", self.server.admin), ("/jobs", ""), ("/users", self.server.admin)):
            with self.subTest(f"{target} with a token: {bool(token)}"):
                head = (f"POST /api/v1{target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
                        f"Content-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n")
                status = self.raw(head.encode())[9:12]
                self.assertIn(status, (b"413", b"401"))

    def test_names_of_jobs(self):
        for name in ("<script>alert(1)</script>", "a\x1b[2Jb", "x" * (1 << 20), "a/../b", "\u202e", ""):
            with self.subTest(name[:20]):
                text = "name: " + repr(name).replace("'", '"') + "\nroles: {worker: {replicas: 1, command: [\"true\"]}}\n"
                reply = self.server.post("/jobs", {"file": text})
                self.assertEqual(reply.status, 422, reply)
                self.assertEqual(reply.headers["Content-Type"], "application/problem+json")
                self.assertNotIn(b"\x1b", reply.body)

    def test_errors_have_places(self):
        reply = self.server.post("/jobs", {"file": "name: a\nroles:\n  worker: {replicas: -1, command: [\"true\"]}\n"})
        self.assertEqual(reply.status, 422)
        error = reply.json["errors"][0]
        self.assertEqual((error["field"], error["line"], error["column"]), ("roles.worker.replicas", 3, 22))

    def test_bodies_that_are_no_requests(self):
        for body in (b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"file": 1}', b'{"file": "a", "more": 1}', b'{"file": ""}',
                     b"[" * 100_000):
            reply = self.server.request("POST", "/jobs", body, headers={"Content-Type": "application/json"})
            self.assertEqual(reply.status, 422, (body[:20], reply))
        reply = self.server.request("POST", "/jobs", b"file=x", headers={"Content-Type": "text/plain"})
        self.assertEqual(reply.status, 415, reply)

    def test_cursors(self):
        for target in ("/jobs?after=ffffffff-12", "/jobs?after=x", "/events?after=ffffffff-1", "/events?after=%00",
                       "/audit?after=zz"):
            reply = self.server.get(target)
            self.assertEqual(reply.status, 400, (target, reply))

    def test_parameters(self):
        for target in ("/jobs?limit=0", "/jobs?limit=1001", "/jobs?limit=x", "/jobs?nonsense=1", "/jobs?since=yesterday",
                       "/jobs?state=sleeping", "/jobs?limit=1&limit=2"):
            reply = self.server.get(target)
            self.assertEqual(reply.status, 400, (target, reply))

    def test_unknown_addresses(self):
        reply = self.server.get("/api/v9/jobs")
        self.assertEqual(reply.status, 404)
        self.assertIn("there is no version", reply.detail)
        self.assertEqual(self.server.get("/nothing").status, 404)
        reply = self.server.request("PATCH", "/jobs", {})
        self.assertEqual((reply.status, reply.headers["Allow"]), (405, "POST, GET"))
        for target in ("/jobs/..%2f..%2fetc", "/jobs/" + "a" * 5000, "/jobs/a/logs/..%2fx/0"):
            self.assertIn(self.server.get(target).status, (400, 404, 414), target)

    def test_uploads(self):
        content = b"print('hello')\n" * 100
        digest = hashlib.sha256(content).hexdigest()

        def put(offset, size, piece, sha256=digest):
            return self.server.request("PUT", f"/files/{sha256}?offset={offset}&size={size}", piece,
                                       headers={"Content-Type": "application/octet-stream"})
        self.assertEqual(put(0, len(content), content[:500]).json["received"], 500)
        with self.subTest("a piece at the wrong place"):
            self.assertEqual(put(100, len(content), content[100:]).status, 409)
        with self.subTest("other bytes"):
            reply = put(500, len(content), b"x" * (len(content) - 500))
            self.assertEqual(reply.status, 422, reply)
            self.assertIn("do not have the digest", reply.detail)
        self.assertEqual(self.server.get(f"/files/{digest}").json["received"], 0)
        self.assertTrue(put(0, len(content), content).json["complete"])
        with self.subTest("bad requests"):
            self.assertEqual(put(0, 4, b"12345", "e" * 64).status, 422)
            self.assertEqual(put(0, 1 << 40, b"1", "f" * 64).status, 413)
            self.assertIn(put(0, 4, b"1234", "../" + "f" * 61).status, (400, 404))
            self.assertEqual(put(0, 4, b"1234", "F" * 64).status, 422)
        with self.subTest("a manifest that leaves the directory"):
            for path in ("../x", "/etc/x", "a/../../x"):
                manifest = '{"entries": [{"path": "%s", "sha256": "%s", "size": %d}]}' % (path, digest, len(content))
                text = job_text() + "files: .\n"
                reply = self.server.post("/jobs", {"file": text, "manifest": manifest})
                self.assertEqual(reply.status, 422, reply)

    def test_origin_of_another_site(self):
        reply = self.server.request("POST", "/jobs", {"file": job_text()}, headers={"Origin": "https://evil.example"})
        self.assertEqual(reply.status, 403, reply)

    def test_failed_attempts_are_slowed(self):
        took = []
        for _ in range(9):
            began = time.monotonic()
            self.assertEqual(self.server.get("/me", "shoal_000000000000_" + "0" * 64).status, 401)
            took.append(time.monotonic() - began)
        self.assertGreater(took[-1], 0.5)
        began = time.monotonic()
        self.assertEqual(self.server.get("/me").status, 200)
        self.assertLess(time.monotonic() - began, 0.5 * PATIENCE)


if __name__ == "__main__":
    unittest.main()
