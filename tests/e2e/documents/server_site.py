"""The server of documented commands, on a machine of the test's own whose hosts ml.example, … are itself (private_machine.py)."""
import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import unittest
import urllib.parse

import private_machine
import sandbox
from sandbox import harness

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import postgres  # noqa: E402  pylint: disable=wrong-import-position

try:
    import oidc_provider
except ImportError:  # without PyJWT
    oidc_provider = None

# How a server is started where a document does not say.
PLAIN = "shoal server --state /var/lib/shoal"
# Jobs whose IDs documents show.
ID = re.compile(r"\b(grid|prepare|tune)-[0-9a-f]{6}\b")
TUNE = ("name: tune\ncommand: [sh, -c, \"echo 'shoal.metric {\\\"loss\\\": {{matrix.lr}}}'\"]\nroles: {worker: 1}\n"
        "sweep: {objective: loss, trials: 2, parameters: {lr: [0.1, 0.2]}}\n")


class Site:
    """The server of a page, and what its commands need of it."""

    def __init__(self, test, box):
        self.test, self.box = test, box
        self.process, self.line, self.url, self.said = None, "", None, ""
        self.ids = {}
        self.provider = self.database = None
        private_machine.clear()
        for name in ("search.password", "ca.pem"):  # that docs/logs.md names
            shutil.copy(os.path.join(box.root, "server.crt"), "/etc/shoal/" + name)

    def serve(self, line):
        """Starts a server as the line says, in the place of the one that runs; what is wrong."""
        fault = self.stop()
        if "--oidc" in line:
            self.provide()
        if "postgres://" in line:
            self.store()
        self.process = self.box.start("exec " + line)
        self.line = line
        harness.poll_until(lambda: "ready on" in harness.said(self.process) or self.process.poll() is not None, 60 * harness.PATIENCE)
        self.said = harness.said(self.process)
        ready = re.search(r"ready on (\S+?)(?:,|$)", self.said, re.M)
        if not ready or self.process.poll() is not None:
            return fault or f"the server is not ready (exit code {self.process.poll()})\n{self.said}"
        self.url = urllib.parse.urlsplit(ready.group(1))
        for team in ("research", "vision"):
            status = self.ask("POST", "/teams", {"name": team})
            if status not in (201, 409):
                return f"a team cannot be made: {status}"
        return fault

    def stop(self):
        """Ends the server as an administrator does; what is wrong."""
        if self.process is None:
            return ""
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(30 * harness.PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            return f"{self.line}: runs on after SIGTERM\n{harness.said(process)}"
        return "" if code == 0 else f"{self.line}: exit code {code} after SIGTERM\n{harness.said(process)}"

    def close(self):
        fault = self.stop()
        for one in (self.provider, self.database):
            if one is not None:
                one.close()
        self.test.assertEqual(fault, "")

    def provide(self):
        """The OpenID Connect provider of /etc/shoal/oidc.json."""
        if oidc_provider is None:
            raise unittest.SkipTest("needs PyJWT (python3-jwt), for the provider")
        if self.provider is None:
            self.provider = oidc_provider.Provider()
            with open("/etc/shoal/client.secret", "w", encoding="utf-8") as file:
                file.write(self.provider.client_secret + "\n")
            os.chmod("/etc/shoal/client.secret", 0o600)
            with open("/etc/shoal/oidc.json", "w", encoding="utf-8") as file:
                json.dump({"issuer": self.provider.issuer, "client_id": "shoal", "client_secret_file": "client.secret",
                           "teams": {"ml-research": {"team": "research", "role": "member"}}}, file)

    def store(self):
        """The PostgreSQL of the host db."""
        if not postgres.programs():
            raise unittest.SkipTest("needs PostgreSQL (postgresql)")
        if self.database is None:
            self.database = postgres.Postgres(address="127.0.0.1")

    @property
    def token(self):
        """The administrator's, on this server."""
        state = re.search(r"--state (\S+)", self.line)
        state = state.group(1) if state else os.path.join(self.box.home.home, "server")
        with open(os.path.join(state, "administrator.token"), encoding="utf-8") as file:
            return file.read().strip()

    def ask(self, method, path, body):
        """The status of the server's answer to a request of the administrator."""
        if self.url.scheme == "https":
            connection = http.client.HTTPSConnection("127.0.0.1", self.url.port, timeout=60, context=ssl._create_unverified_context())  # pylint: disable=protected-access
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.url.port, timeout=60)
        connection.request(method, "/api/v1" + path, json.dumps(body), {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"})
        status = connection.getresponse().status
        connection.close()
        return status

    def sign_in(self):
        """Signs the commands in that do not name a server."""
        words = ["shoal", "login", "https://ml.example:7117" if self.url.scheme == "https" else "http://127.0.0.1:7117", "--token-file", "-"]
        token = self.box.home.write("token", self.token)
        pin = re.search(r"fingerprint: (\w+)", self.said)
        return self.box.run(" ".join([*words[:-1], token, *(["--fingerprint", pin.group(1)] if pin and "self-signed" in self.line else [])]))

    def fill_in(self, line):
        """The line with what a document shows an example of."""
        pin = re.search(r"fingerprint: (\w+)", self.said)
        line = line.replace("3f9a…", pin.group(1) if pin else "3f9a…")
        return ID.sub(lambda found: self.id_of(found.group(1)), line)

    def id_of(self, name):
        if name not in self.ids:
            self.submit(name)
        return self.ids[name]

    def submit(self, name):
        """A job or group of that name, where the page has not submitted one."""
        files = {"tune": ("tune.yaml", TUNE), "prepare": ("prepare.yaml", "name: prepare\ncommand: [echo, hello]\nroles: {worker: 1}\n")}
        file = "grid.yaml"
        if name in files:
            file = files[name][0]
            self.box.home.write("at/" + file, files[name][1])
        code, said = self.box.run("shoal submit " + file)
        self.test.assertEqual(code, 0, said)
        self.remember(said)

    def remember(self, said):
        for made, name in re.findall(r"^((grid|prepare|tune)-[0-9a-f]{6})\b", said, re.M):
            self.ids[name] = made
