"""What the tests of `shoal server` share: a server on a port of its own, users with tokens, and requests to it.

Standard library only."""
import http.client
import json
import os
import signal
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PATIENCE, Home, poll_until, said  # noqa: E402  pylint: disable=wrong-import-position

PREFIX = "/api/v1"
QUICK = """\
name: %s
roles:
  worker: {replicas: 2, command: [sh, -c, "%s"]}
"""


def job_text(name="quick", script="echo hello"):
    return QUICK % (name, script)


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def detail(self):
        return self.json.get("detail", "")

    def __repr__(self):
        return f"{self.status} {self.body[:500]!r}"


class Server:
    """A server of one home; `start` and `kill` as often as a test likes, on the same port."""

    def __init__(self, home=None, options=()):
        self.home = home or Home()
        self.state = self.home.path("state")
        self.options = options
        self.port = 0
        self.process = None
        self.ready = {}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self.home.__exit__(*error)

    def start(self, seconds=30):
        """Starts it and waits until it is ready; the seconds that this took."""
        began = time.monotonic()
        self.process = self.home.start("server", "--json", "--state", self.state, "--listen", f"127.0.0.1:{self.port}",
                                       *self.options)
        poll_until(lambda: "ready" in said(self.process) or self.process.poll() is not None, seconds * PATIENCE)
        took = time.monotonic() - began
        lines = [line for line in said(self.process).splitlines() if line.startswith("{")]
        if not lines:
            raise AssertionError(f"the server is not ready: {said(self.process)}")
        self.ready = json.loads(lines[0])
        self.port = urllib.parse.urlsplit(self.ready["url"]).port
        return took

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=30):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds * PATIENCE)

    @property
    def url(self):
        return self.ready["url"]

    @property
    def token_file(self):
        return os.path.join(self.state, "administrator.token")

    @property
    def admin(self):
        with open(self.token_file, encoding="utf-8") as f:
            return f.read().strip()

    def request(self, method, target, body=None, token="", headers=None, seconds=60):
        """One request; `body` is sent as JSON unless it is bytes. `token` None: without one; empty: the administrator's."""
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.admin}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds * PATIENCE)
        try:
            connection.request(method, target if target.startswith(("/healthz", "/readyz", "/metrics", "/api")) else PREFIX + target,
                               body=body, headers=sent)
            reply = connection.getresponse()
            return Reply(reply.status, reply.headers, reply.read())
        finally:
            connection.close()

    def get(self, target, token=""):
        return self.request("GET", target, token=token)

    def post(self, target, body=None, token="", headers=None):
        return self.request("POST", target, {} if body is None else body, token, headers)

    def make_user(self, name, team=None, role="member", scopes=None):
        """A user with a token, in a team if one is given: the token."""
        assert self.post("/users", {"name": name}).status == 201
        if team is not None:
            self.post("/teams", {"name": team})
            reply = self.request("PUT", f"/teams/{team}/members/{name}", {"role": role})
            assert reply.status == 200, reply
        body = {"user": name, "name": "test"}
        if scopes is not None:
            body["scopes"] = scopes
        reply = self.post("/tokens", body)
        assert reply.status == 201, reply
        return reply.json["token"]

    def submit(self, text, token="", **fields):
        """The id of a job that was submitted."""
        reply = self.post("/jobs", {"file": text, **fields}, token)
        assert reply.status == 201, reply
        return reply.json["id"]

    def state_of(self, job, token=""):
        return self.get(f"/jobs/{job}", token).json["state"]

    def wait_for(self, job, states, seconds=60):
        """The job's record once it has one of these states, else as it is then."""
        poll_until(lambda: self.state_of(job) in states, seconds * PATIENCE, 0.05)
        return self.get(f"/jobs/{job}").json

    def wait_for_end(self, job, seconds=60):
        return self.wait_for(job, ("succeeded", "failed", "cancelled"), seconds)

    def shoal(self, *arguments, token="", seconds=60, **options):
        """Runs a command against this server: exit code, standard output, standard error."""
        env = {"SHOAL_SERVER": self.url, "SHOAL_TOKEN": token or self.admin,
               "XDG_CONFIG_HOME": self.home.path("config")}
        return self.home.run(*arguments, seconds=seconds, env=env, **options)


class Events:
    """A stream of server-sent events, read on a thread."""

    def __init__(self, server, target, token="", headers=None):
        self.events, self.closed = [], threading.Event()
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120 * PATIENCE)
        self._connection.request("GET", PREFIX + target, headers={"Authorization": f"Bearer {token or server.admin}",
                                                                   "Accept": "text/event-stream", **(headers or {})})
        self.reply = self._connection.getresponse()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        event = {}
        try:
            for line in self.reply:
                line = line.decode().rstrip("\n")
                if not line and event:
                    self.events.append(event)
                    event = {}
                name, colon, value = line.partition(": ")
                if colon and name:
                    event[name] = json.loads(value) if name == "data" else value
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass
        self.closed.set()

    def wait(self, condition, seconds=60):
        """Whether an event that fulfils the condition has come."""
        return poll_until(lambda: any(condition(e) for e in list(self.events)), seconds * PATIENCE)

    def close(self):
        try:
            self._connection.sock and self._connection.sock.close()
        except OSError:
            pass
