"""Commands whose cluster does not answer: an API server that takes connections and says nothing. SHOAL_BIN names the binary."""
import os
import signal
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

JOB = """\
name: far
framework: generic
image: example.com/none:1
kubernetes: {launcher: "example.com/launcher:1"}
roles: {worker: {command: [sleep, "600"]}}
"""
CONFIG = """\
current-context: a
contexts: [{name: a, context: {cluster: a}}]
clusters: [{name: a, cluster: {server: "http://127.0.0.1:%d"}}]
"""


class Silence(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.server.close)
        self.env = {"KUBECONFIG": self.home.write("config", CONFIG % self.server.getsockname()[1]), "SHOAL_ENGINE": "kubernetes"}
        self.asked = []
        self.addCleanup(lambda: [connection.close() for connection in self.asked])

    def start(self):
        """The command, once it waits for an answer."""
        process = self.home.start("run", self.home.write("job.yaml", JOB), env=self.env)
        self.server.settimeout(30 * harness.PATIENCE)
        connection, _ = self.server.accept()
        self.asked.append(connection)
        connection.settimeout(30 * harness.PATIENCE)
        self.assertTrue(connection.recv(1))
        return process

    def test_ctrl_c_is_heard(self):
        process = self.start()
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20 * harness.PATIENCE), 130, harness.said(process))
        self.assertLess(time.monotonic() - begun, 10 * harness.PATIENCE)
        self.assertEqual(self.home.leftovers(), [])

    def test_ctrl_c_is_heard_when_the_server_is_gone(self):
        process = self.start()
        self.server.close()
        self.asked[0].close()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20 * harness.PATIENCE), 130, harness.said(process))


if __name__ == "__main__":
    unittest.main()
