"""The commands about jobs over a server: the same output and exit codes as on this machine."""
import contextlib
import json
import os
import re
import signal
import socket
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import PATIENCE, Server, job_text, poll_until, said  # noqa: E402  pylint: disable=wrong-import-position

SLEEPER = job_text("sleeper", "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done")


class RemoteTest(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.__exit__)
        self.server.start()

    def file(self, text=job_text(), name="job.yaml"):
        return self.server.home.write(name, text)

    def start(self, *arguments):
        env = {"SHOAL_SERVER": self.server.url, "SHOAL_TOKEN": self.server.admin}
        return self.server.home.start(*arguments, env=env)

    def test_login(self):
        token = os.path.join(self.server.state, "administrator.token")
        env = {"XDG_CONFIG_HOME": self.server.home.path("config")}
        code, out, err = self.server.home.run("login", self.server.url, "--token-file", token, env=env)
        self.assertEqual(code, 0, err)
        self.assertIn(f"admin is signed in to {self.server.url}", out)
        login = self.server.home.path("config", "shoal", "login.json")
        self.assertEqual(os.stat(login).st_mode & 0o777, 0o600)
        code, out, err = self.server.home.run("submit", self.file(), env=env)
        self.assertEqual(code, 0, err)
        job = out.strip()
        self.assertEqual(self.server.wait_for_end(job)["state"], "succeeded")
        code, out, _ = self.server.home.run("jobs", "--json", env=env)
        self.assertEqual([json.loads(line)["id"] for line in out.splitlines()], [job])
        with self.subTest("--server none"):
            code, out, _ = self.server.home.run("--server", "none", "jobs", "--json", env=env)
            self.assertEqual((code, out), (0, ""))
        with self.subTest("logout"):
            self.assertEqual(self.server.home.run("logout", env=env)[0], 0)
            code, _, err = self.server.home.run("submit", self.file(), env=env)
            self.assertEqual(code, 2 if "expected" in err else code)
            self.assertIn("`shoal submit` needs a server", err)
        with self.subTest("a wrong token"):
            wrong = self.server.home.write("wrong", "shoal_000000000000_" + "0" * 64)
            code, _, err = self.server.home.run("login", self.server.url, "--token-file", wrong, env=env)
            self.assertEqual(code, 3, err)

    def test_submit_show_logs(self):
        code, out, err = self.server.shoal("submit", self.file(), "--json")
        self.assertEqual(code, 0, err)
        job = json.loads(out)["id"]
        code, out, err = self.server.shoal("logs", "-f", job)
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(out.splitlines()), ["worker-0 | hello", "worker-1 | hello"])
        code, out, err = self.server.shoal("logs", "quick", "worker-1")
        self.assertEqual((code, out), (0, "hello\n"), err)
        code, out, err = self.server.shoal("show", "quick")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"state +succeeded")
        self.assertRegex(out, r"worker-1 +ended +1 ")
        code, _, err = self.server.shoal("show", "other")
        self.assertEqual(code, 4, err)

    def test_files_are_uploaded(self):
        folder = self.server.home.path("program")
        os.makedirs(os.path.join(folder, "sub"))
        with open(os.path.join(folder, "sub", "hello.sh"), "w", encoding="utf-8") as f:
            f.write("echo from a file\n")
        with open(os.path.join(folder, "big"), "wb") as f:
            f.write(os.urandom(9 << 20))
        text = ("name: shipped\nfiles: .\nroles: {worker: {replicas: 1, command: [sh, -c, 'sh sub/hello.sh; wc -c < big']}}\n")
        path = os.path.join(folder, "job.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        code, out, err = self.server.shoal("submit", path)
        self.assertEqual(code, 0, err)
        self.assertIn("uploading 3 files", err)
        job = out.strip()
        self.assertEqual(self.server.wait_for_end(job)["state"], "succeeded")
        self.assertEqual(self.server.get(f"/jobs/{job}/logs/worker-0/0").body,
                         b"from a file\n%d\n" % (9 << 20))
        with self.subTest("the second time nothing is uploaded"):
            code, out, err = self.server.shoal("submit", path)
            self.assertEqual(code, 0, err)
            self.assertNotIn("uploading", err)
            self.assertEqual(self.server.wait_for_end(out.strip())["state"], "succeeded")

    def test_run(self):
        code, out, err = self.server.shoal("run", self.file())
        self.assertEqual(code, 0, err)
        self.assertIn("| hello", out)
        self.assertRegex(out, r"quick-\w+ succeeded after")
        code, out, err = self.server.shoal("run", self.file(job_text("bad", "exit 3")))
        self.assertEqual(code, 1, err)
        self.assertIn("exited with 3", err)

    def test_run_is_stopped_by_ctrl_c(self):
        process = self.start("run", self.file(SLEEPER))
        self.assertTrue(poll_until(lambda: "| up" in said(process), 60 * PATIENCE), said(process))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60 * PATIENCE), 130)
        self.assertIn("| saved", said(process))
        record = self.server.get("/jobs?name=sleeper").json["items"][0]
        self.assertEqual(record["state"], "cancelled")

    def test_run_goes_on_over_a_restart_of_the_server(self):
        script = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo line $i; sleep 0.02; done"
        process = self.start("run", self.file(job_text("long", script)))
        self.assertTrue(poll_until(lambda: "| line 20" in said(process), 60 * PATIENCE), said(process))
        self.server.kill()
        self.server.start()
        self.assertEqual(process.wait(120 * PATIENCE), 0, said(process))
        lines = [line for line in said(process).splitlines() if "worker-0" in line and "| line" in line]
        self.assertEqual([line.split("| ")[1] for line in lines], [f"line {i}" for i in range(1, 201)])

    def test_suspend_resume_scale_stop(self):
        text = SLEEPER.replace("replicas: 2", "replicas: 2, min: 1, max: 4")
        _, out, err = self.server.shoal("submit", self.file(text))
        job = out.strip()
        self.server.wait_for(job, ("running",))
        code, out, err = self.server.shoal("scale", job, "worker=3")
        self.assertEqual(code, 0, err)
        code, _, err = self.server.shoal("scale", job, "worker=9")
        self.assertNotEqual(code, 0)
        self.assertIn("4", err)
        code, out, err = self.server.shoal("suspend", job)
        self.assertEqual(code, 0, err)
        self.assertIn("suspended", out)
        process = self.start("resume", job)
        self.server.wait_for(job, ("running",))
        code, out, err = self.server.shoal("stop", job)
        self.assertEqual(code, 0, err)
        self.assertIn("cancelled", out)
        self.assertEqual(process.wait(60 * PATIENCE), 130, said(process))

    def test_outputs(self):
        script = "mkdir -p $SHOAL_OUTPUT/a; echo model $SHOAL_TASK > $SHOAL_OUTPUT/a/model; ln -s /etc/passwd $SHOAL_OUTPUT/link"
        _, out, _ = self.server.shoal("submit", self.file(job_text("writes", script)))
        job = out.strip()
        self.server.wait_for_end(job)
        code, out, err = self.server.shoal("outputs", job)
        self.assertEqual(code, 0, err)
        self.assertIn("a/model", out)
        to = self.server.home.path("copied")
        code, _, err = self.server.shoal("outputs", job, "--to", to)
        self.assertEqual(code, 0, err)
        with open(os.path.join(to, "worker-1.0", "a", "model"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "model worker/1/0\n")
        self.assertEqual(self.server.get(f"/jobs/{job}/outputs/worker-0/0?path=link").status, 404)
        self.assertEqual(self.server.get(f"/jobs/{job}/outputs/worker-0/0?path=..%2F..%2Ftoken").status, 404)

    @staticmethod
    def message(connection):
        """A whole request or reply with a Content-Length; empty at the end."""
        data = b""
        while True:
            head, end, body = data.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
            if end and len(body) >= (int(length[1]) if length else 0):
                return data
            piece = connection.recv(1 << 20)
            if not piece:
                return b""
            data += piece

    def test_submit_goes_on_over_a_restart_of_the_server(self):
        """The server is killed after it has stored the job and before its answer arrives."""
        restarted = threading.Event()

        def forward(client):
            with client, contextlib.suppress(OSError), \
                    socket.create_connection(("127.0.0.1", self.server.port)) as server:
                while data := self.message(client):
                    server.sendall(data)
                    reply = self.message(server)
                    if data.startswith(b"POST /api/v1/jobs ") and not restarted.is_set():
                        assert b" 201 " in reply, reply
                        self.server.kill()
                        client.close()
                        self.server.start()
                        restarted.set()
                        return
                    client.sendall(reply)

        def accept(listener):
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=forward, args=(client,), daemon=True).start()

        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=accept, args=(listener,), daemon=True).start()
            code, out, err = self.server.shoal("--server", f"http://127.0.0.1:{listener.getsockname()[1]}", "submit",
                                               self.file(job_text("once")), seconds=120)
        self.assertEqual(code, 0, err)
        self.assertTrue(restarted.is_set())
        self.assertIn("trying again", err)
        jobs = self.server.get("/jobs?name=once").json["items"]
        self.assertEqual([job["id"] for job in jobs], [out.strip()])

    def test_run_over_a_server_that_hangs_ends_on_a_signal(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:  # connections are made, and nothing is answered
            for sent in (signal.SIGTERM, signal.SIGINT):
                process = self.start("--server", f"http://127.0.0.1:{listener.getsockname()[1]}", "run", self.file())
                under_way, _ = listener.accept()
                self.addCleanup(under_way.close)
                process.send_signal(sent)
                self.assertEqual(process.wait(10 * PATIENCE), 130, said(process))
                self.assertIn("interrupted before the server", said(process))

    def test_token_with_a_line_break(self):
        code, _, err = self.server.shoal("jobs", token=self.server.admin + "\nX: y")
        self.assertEqual(code, 3, err)
        self.assertIn("SHOAL_TOKEN", err)

    def test_unreachable(self):
        self.server.kill()
        for arguments in (("jobs",), ("show", "x"), ("submit", self.file()), ("run", self.file())):
            code, _, err = self.server.shoal(*arguments)
            self.assertEqual(code, 5, (arguments, err))
            self.assertIn("cannot be reached", err)
            self.assertEqual(len(err.splitlines()), 1, err)


class TlsTest(unittest.TestCase):
    def test_pinned_certificate(self):
        server = Server(options=("--tls-self-signed", "--name", "ml.example"))
        self.addCleanup(server.__exit__)
        server.start()
        self.assertTrue(server.url.startswith("https://"))
        pin = server.ready["fingerprint"]
        self.assertRegex(pin, "^[0-9a-f]{64}$")
        code, _, err = server.home.run("login", server.url, "--token-file", server.token_file)
        self.assertEqual(code, 3, err)
        self.assertIn("--fingerprint", err)
        code, _, err = server.home.run("login", server.url, "--token-file", server.token_file, "--fingerprint", "0" * 64)
        self.assertEqual(code, 3, err)
        code, _, err = server.home.run("login", server.url, "--token-file", server.token_file, "--fingerprint", pin)
        self.assertEqual(code, 0, err)
        code, out, err = server.home.run("run", server.home.write("job.yaml", job_text()))
        self.assertEqual(code, 0, err)
        self.assertIn("| hello", out)
        with self.subTest("the certificate stays the same"):
            server.stop()
            server.start()
            self.assertEqual(server.ready["fingerprint"], pin)
            self.assertEqual(server.home.run("jobs")[0], 0)


if __name__ == "__main__":
    unittest.main()
