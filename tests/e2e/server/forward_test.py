"""Log forwarders: doubles of OpenSearch's bulk API, Loki's push API and syslog receivers, which refuse what the real ones refuse;
receivers that are away, overloaded or refuse lines; a killed server."""
import http.server
import json
import os
import re
import socket
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import Server  # noqa: E402  pylint: disable=wrong-import-position
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PATIENCE, poll_until  # noqa: E402  pylint: disable=wrong-import-position

LINES = 5000
PRINTS = f"i=0; while [ $i -lt {LINES} ]; do echo \"line $i\"; i=$((i+1)); done; printf 'no feed'"
EXPECTED = [f"line {i}" for i in range(LINES)] + ["no feed"]


def one_task(script):
    """A job file with one task that runs the shell script."""
    return json.dumps({"name": "quick", "roles": {"worker": {"replicas": 1, "command": ["sh", "-c", script]}}})


class Double:
    """An HTTP server whose `take(path, headers, body)` answers each POST: a status, headers and a JSON body."""

    def __init__(self, port=0):
        double = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                with double.lock:
                    status, extra, reply = double.take(self.path, headers, body)
                text = b"" if reply is None else json.dumps(reply).encode()
                self.send_response(status)
                for name, value in extra.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.lock = threading.Lock()
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def take(self, path, headers, body):
        raise NotImplementedError

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


class OpenSearch(Double):
    """POST /_bulk of OpenSearch 2 and 3 for `create`. `item_status(id)` may make a document fail."""

    def __init__(self, port=0):
        self.documents, self.calls, self.busy = {}, 0, 0
        self.item_status = lambda _id, document: None
        super().__init__(port)

    def take(self, path, headers, body):
        self.calls += 1
        if headers.get("authorization") != "Basic c2hvYWw6Y2FuYXJ5LTQx":  # shoal:canary-41
            return 401, {"WWW-Authenticate": "Basic"}, {"error": "Unauthorized"}
        if path != "/_bulk" or headers["content-type"] not in ("application/x-ndjson", "application/json"):
            return 406, {}, {"error": "Content-Type header is not supported"}
        if not body.endswith(b"\n"):
            return 400, {}, {"error": {"type": "illegal_argument_exception",
                                       "reason": "The bulk request must be terminated by a newline [\\n]"}}
        if self.busy > 0:
            self.busy -= 1
            return 429, {"Retry-After": "1"}, {"error": {"type": "circuit_breaking_exception"}}
        lines = body.decode().splitlines()
        items = []
        for action, source in zip(lines[::2], lines[1::2], strict=True):
            (name, where), = json.loads(action).items()
            assert name == "create" and where["_index"] == "shoal-logs" and len(where["_id"].encode()) <= 512
            document = json.loads(source)
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", document["@timestamp"])
            status = self.item_status(where["_id"], document)
            if status is None:
                status = 409 if where["_id"] in self.documents else 201
            item = {"_index": "shoal-logs", "_id": where["_id"], "status": status}
            if status == 201:
                self.documents[where["_id"]] = document
            else:
                item["error"] = {"type": "some_exception", "reason": "why"}
            items.append({"create": item})
        return 200, {}, {"took": 1, "errors": any("error" in item["create"] for item in items), "items": items}

    def messages(self, job):
        found = [d for d in list(self.documents.values()) if d["job"] == job]
        return [d["message"] for d in sorted(found, key=lambda d: d["offset"])]


class Loki(Double):
    """POST /loki/api/v1/push of Loki 3 with JSON."""

    def __init__(self):
        self.entries = {}  # stream → {(time, line): metadata}
        self.refused = []
        super().__init__()

    def take(self, path, headers, body):
        if path != "/loki/api/v1/push" or headers["content-type"] != "application/json":
            return 400, {}, {"error": "content type"}
        if headers.get("x-scope-orgid") != "ml":
            return 401, {}, {"error": "no org id"}
        if self.refused and self.refused.pop(0) == 500:
            return 500, {}, {"error": "ingester"}
        taken = []
        for stream in json.loads(body)["streams"]:
            labels = stream["stream"]
            if not labels or len(labels) > 15 or not all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) for name in labels):
                return 400, {}, {"error": "labels"}
            for time, line, metadata in stream["values"]:
                if not isinstance(time, str) or not time.isdigit() or len(time) != 19:
                    return 400, {}, {"error": "time"}
                if not all(isinstance(value, str) for value in metadata.values()) or len(line) > 256 * 1024:
                    return 400, {}, {"error": "entry"}
                taken.append((json.dumps(labels, sort_keys=True), (int(time), line), metadata))
        for labels, entry, metadata in taken:
            self.entries.setdefault(labels, {})[entry] = metadata  # equal entries are one
        return 204, {}, None

    def lines(self, job):
        return [line for stream in list(self.entries.values()) for (_, line), metadata in sorted(stream.items(), key=lambda e: e[0])
                if metadata["job"] == job]


class Syslog:
    """A receiver over TCP with counted octets (RFC 6587 3.4.1)."""
    MESSAGE = re.compile(r'<14>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z [!-~]{1,255} shoal [!-~]{1,128} log '
                         r'\[shoal@32473((?: [a-z]+="(?:[^"\\\]]|\\["\\\]])*")+)\] (.*)', re.DOTALL)

    def __init__(self):
        self.messages, self.errors = [], []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection):
        with connection, connection.makefile("rb") as stream:
            while True:
                length = b""
                while (byte := stream.read(1)) not in (b" ", b""):
                    length += byte
                if not length:
                    return
                self.add(stream.read(int(length)))

    def add(self, message):
        match = self.MESSAGE.fullmatch(message.decode())
        if match is None:
            self.errors.append(message)
            return
        parameters = dict(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', match[1]))
        self.messages.append((parameters, match[2]))

    def lines(self, job):
        return [text for parameters, text in list(self.messages) if parameters["job"] == job]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def receivers(server, **urls):
    password = server.home.write("password", "canary-41\n")
    text = "forward:\n"
    for kind, url in urls.items():
        text += f"  to-{kind}:\n    kind: {kind}\n    url: {url}\n"
        if kind == "opensearch":
            text += f"    username: shoal\n    password_file: {password}\n"
        if kind == "loki":
            text += "    tenant: ml\n    labels: {cluster: east}\n"
    return "--forward-logs", server.home.write("forward.yaml", text)


def metric(server, name, kind):
    found = re.search(rf'^{name}{{forwarder="to-{kind}"}} (\S+)$', server.get("/metrics").body.decode(), re.MULTILINE)
    return float(found[1])


class ForwardTest(unittest.TestCase):
    def test_every_line_reaches_each_receiver(self):
        with OpenSearch() as search, Loki() as loki, Syslog() as syslog:
            server = Server()
            server.options = receivers(server, opensearch=f"http://127.0.0.1:{search.port}", loki=f"http://127.0.0.1:{loki.port}",
                                       syslog=f"tcp://127.0.0.1:{syslog.port}")
            with server:
                job = server.submit(one_task(PRINTS), team="default")
                server.wait_for_end(job)
                for lines in (lambda: search.messages(job), lambda: loki.lines(job), lambda: syslog.lines(job)):
                    poll_until(lambda: len(lines()) >= len(EXPECTED), 60 * PATIENCE)  # pylint: disable=cell-var-from-loop
                    self.assertEqual(lines(), EXPECTED)
                document = next(iter(search.documents.values()))
                self.assertEqual({document[name] for name in ("team", "user", "engine", "role")}, {"default", "admin", "local", "worker"})
                self.assertEqual((document["index"], document["attempt"]), (0, 1))
                labels, = [json.loads(labels) for labels in loki.entries]
                self.assertEqual(labels, {"cluster": "east", "engine": "local", "role": "worker", "service_name": "shoal",
                                          "team": "default"})
                self.assertEqual(syslog.errors, [])
                for kind in ("opensearch", "loki", "syslog"):
                    # Counted after the receiver's answer.
                    self.assertTrue(poll_until(lambda: metric(server, "shoal_log_forward_jobs", kind) == 0,  # pylint: disable=cell-var-from-loop
                                               20 * PATIENCE))
                    self.assertEqual(metric(server, "shoal_log_forward_lines_total", kind), len(EXPECTED))

    def test_overload_and_refused_lines(self):
        failed = set()

        def status(name, document):
            if document["message"] == "line 7":
                return 400  # a mapper_parsing_exception: never taken
            if document["message"] == "line 9" and name not in failed:
                failed.add(name)
                return 429
            return None

        with OpenSearch() as search, Loki() as loki:
            search.busy, search.item_status, loki.refused = 2, status, [500, 500]
            server = Server()
            server.options = receivers(server, opensearch=f"http://127.0.0.1:{search.port}", loki=f"http://127.0.0.1:{loki.port}")
            with server:
                job = server.submit(one_task(PRINTS), team="default")
                server.wait_for_end(job)
                expected = [line for line in EXPECTED if line != "line 7"]
                poll_until(lambda: len(search.messages(job)) >= len(expected), 60 * PATIENCE)
                self.assertEqual(search.messages(job), expected)
                poll_until(lambda: len(loki.lines(job)) >= len(EXPECTED), 60 * PATIENCE)
                self.assertEqual(loki.lines(job), EXPECTED)
                self.assertEqual(metric(server, "shoal_log_forward_rejected_total", "opensearch"), 1)
                self.assertGreaterEqual(metric(server, "shoal_log_forward_failures_total", "opensearch"), 3)

    def test_a_receiver_that_is_away_and_a_killed_server(self):
        with OpenSearch() as search:
            port = search.port
        server = Server()
        server.options = receivers(server, opensearch=f"http://127.0.0.1:{port}")
        with server:
            job = server.submit(one_task(PRINTS), team="default")
            self.assertEqual(server.wait_for_end(job)["state"], "succeeded")  # programs do not wait for receivers
            self.assertTrue(poll_until(lambda: metric(server, "shoal_log_forward_failing", "opensearch") == 1, 30 * PATIENCE))
            server.kill()
            server.start()
            with OpenSearch(port) as back:
                poll_until(lambda: len(back.messages(job)) >= len(EXPECTED), 120 * PATIENCE)
                self.assertEqual(back.messages(job), EXPECTED)

    def test_datagrams(self):
        receiver = Syslog()
        with receiver, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.bind(("127.0.0.1", 0))
            datagrams.settimeout(60 * PATIENCE)
            server = Server()
            server.options = receivers(server, syslog=f"udp://127.0.0.1:{datagrams.getsockname()[1]}")
            with server:
                job = server.submit(one_task("echo 'a]\\\"b'; echo second"), team="default")
                server.wait_for_end(job)
                for _ in range(2):
                    receiver.add(datagrams.recv(65536))
                self.assertEqual(receiver.errors, [])
                self.assertEqual(receiver.lines(job)[1], "second")

    def test_settings_are_checked(self):
        for text, sentence in (("forward: {a: {kind: splunk, url: x}}", "opensearch, loki or syslog"),
                               ("forward: {a: {kind: loki}}", "a.url: missing"),
                               ("forward: {a: {kind: loki, url: 'http://h', index: x}}", "has no such setting"),
                               ("forward: {a: {kind: syslog, url: 'ftp://h:1'}}", "expected tcp://HOST:PORT"),
                               ("forward: {a: {kind: opensearch, url: 'http://h', username: x}}", "belong together"),
                               ("forward: {}", "expected 1 to 16 receivers"), ("forwards: {}", "unknown field")):
            server = Server()
            file = server.home.write("forward.yaml", text + "\n")
            code, _, err = server.home.run("server", "--state", server.state, "--listen", "127.0.0.1:0", "--forward-logs", file)
            self.assertEqual(code, 2, err)
            self.assertIn(sentence, err)
            self.assertIn("forward.yaml:1:", err)
            server.home.__exit__(None, None, None)


if __name__ == "__main__":
    unittest.main()
