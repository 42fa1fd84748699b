"""`shoal exec` and `shoal forward`: into a running task, with its view of the machine, and out of it again."""
import contextlib
import fcntl
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import termios
import time
import unittest

import harness

JOB = """\
name: target
command: [sh, -c, 'echo here > "$SHOAL_SCRATCH/mark"; trap "exit 0" TERM; while :; do sleep 0.1; done']
env: {COLOUR: blue}
roles: {worker: {replicas: 2}}
"""
SERVER = """\
name: target
command: [python3, -c, "import http.server, os; http.server.HTTPServer(('127.0.0.1', int(os.environ['SHOAL_PORT'])), http.server.SimpleHTTPRequestHandler).serve_forever()"]
roles: {worker: {replicas: 1, ports: [web], ready: {tcp: web}}}
"""


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class InTask(unittest.TestCase):
    job = JOB

    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.run_process = self.home.start("run", self.home.write("job.yaml", self.job))
        self.addCleanup(self.run_process.kill)
        code = harness.poll_until(lambda: self.exec("true")[0] == 0 or None, 20 * harness.PATIENCE, pause=0.2)
        self.assertTrue(code, read(self.run_process.log))

    def exec(self, *command, task="worker-0", **options):
        return self.home.run("exec", "target", task, "--", *command, **options)

    def stop(self):
        self.assertEqual(self.home.run("stop", "target")[0], 0)
        self.run_process.wait(30)
        self.assertEqual(self.home.leftovers(), [])


class Exec(InTask):
    def test_sees_what_the_program_sees(self):
        code, out, err = self.exec("sh", "-c", 'echo "$COLOUR $SHOAL_INDEX $(cat "$SHOAL_SCRATCH/mark")"', task="worker-1")
        self.assertEqual((code, out), (0, "blue 1 here\n"), err)
        code, out, _ = self.exec("cat", "/proc/1/comm")
        mode = json.loads(self.home.run("doctor", "--json")[1])
        mode = next(f["mode"] for f in mode["findings"] if f["name"] == "processes")
        if mode != "guard":
            own = subprocess.run(["readlink", "/proc/self/ns/pid"], stdout=subprocess.PIPE, text=True).stdout
            self.assertNotEqual(self.exec("readlink", "/proc/self/ns/pid")[1], own)
        self.stop()

    def test_exit_codes_and_signals(self):
        self.assertEqual(self.exec("sh", "-c", "exit 7")[0], 7)
        self.assertEqual(self.exec("sh", "-c", "kill -9 $$")[0], 137)
        code, _, err = self.exec("no-such-program")
        self.assertEqual(code, 4, err)
        self.assertIn("no-such-program", err)
        for wrong in ("worker-2", "chief", "chief-0"):
            code, _, err = self.exec("true", task=wrong)
            self.assertEqual(code, 4, err)
        self.assertEqual(self.home.run("exec", "target", "worker-0")[0], 2)
        self.assertEqual(self.home.run("exec", "nothing", "worker-0", "--", "true")[0], 4)
        # SIGTERM to us is the command's.
        process = self.home.start("exec", "target", "worker-0", "--", "sh", "-c",
                                  'trap "exit 5" TERM; echo up; while :; do sleep 0.05; done')
        self.assertTrue(harness.poll_until(lambda: "up" in read(process.log), 10 * harness.PATIENCE))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10), 5)
        self.stop()

    def test_input_and_output_go_through(self):
        data = os.urandom(1 << 20)
        done = subprocess.run([self.home.binary, "exec", "target", "worker-0", "--", "cat"], input=data, check=False,
                              stdout=subprocess.PIPE, env=self.home.environ(), timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, data))
        self.stop()

    def test_a_terminal_of_its_own(self):
        pid, master = pty.fork()
        if pid == 0:
            os.environ.clear()
            os.environ.update(self.home.environ({"TERM": "xterm-test"}))
            os.execv(self.home.binary, [self.home.binary, "exec", "target", "worker-0", "--", "sh", "-c",
                                        'stty size; echo "$TERM"; read line; echo "got $line"; read more; exit 3'])
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
        seen = b""

        def until(words):
            nonlocal seen
            end = time.monotonic() + 20 * harness.PATIENCE
            while words not in seen and time.monotonic() < end:
                seen += os.read(master, 4096)
            self.assertIn(words, seen)

        until(b"xterm-test")
        self.assertRegex(seen.decode(), r"\d+ \d+")
        os.write(master, b"hello\r")
        until(b"got hello")
        os.write(master, b"\x03")  # Ctrl-C is the command's, not ours
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 130)
        os.close(master)
        self.stop()

    def test_ends_with_the_program_and_with_us(self):
        process = self.home.start("exec", "target", "worker-0", "--", "sh", "-c", "echo up; sleep 1000")
        other = self.home.start("exec", "target", "worker-0", "--", "sh", "-c", "echo up; sleep 2000")
        for one in (process, other):
            self.assertTrue(harness.poll_until(lambda: "up" in read(one.log), 10 * harness.PATIENCE))
        other.kill()
        other.wait()
        gone = harness.poll_until(lambda: not any("sleep" in p.argv and "2000" in p.argv for p in self.home.processes()), 5)
        self.assertTrue(gone, "killed, it leaves its command behind")
        self.stop()
        self.assertEqual(process.wait(10), 137)


class Forward(InTask):
    job = SERVER

    def test_reaches_the_tasks_port_and_no_others(self):
        _, port, _ = self.exec("sh", "-c", "echo $SHOAL_PORT")
        port = int(port)
        process = self.home.start("forward", "target", "worker-0", f"0:{port}")
        line = harness.poll_until(lambda: [l for l in read(process.log).splitlines() if l.startswith("127.0.0.1:")] or None, 20 * harness.PATIENCE)
        self.assertTrue(line, read(process.log))
        local = int(line[0].split()[0].rsplit(":", 1)[1])
        for _ in range(3):
            def fetch():  # reset while the program does not listen yet
                with contextlib.suppress(ConnectionResetError), socket.create_connection(("127.0.0.1", local), timeout=10) as s:
                    s.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    data = b""
                    while chunk := s.recv(4096):
                        data += chunk
                    return data.startswith(b"HTTP/1.0 200")
            self.assertTrue(harness.poll_until(fetch, 10 * harness.PATIENCE, pause=0.2))
        process.terminate()
        process.wait(10)
        # A port on which somebody else listens is not the task's.
        with socket.create_server(("127.0.0.1", 0)) as other:
            strange = other.getsockname()[1]
            process = self.home.start("forward", "target", "worker-0", f"0:{strange}")
            line = harness.poll_until(lambda: read(process.log).splitlines() or None, 10 * harness.PATIENCE)
            socket.create_connection(("127.0.0.1", int(line[0].split()[0].rsplit(":", 1)[1])), timeout=10).close()
            said = harness.poll_until(lambda: "no process of worker-0 listens" in read(process.log), 10 * harness.PATIENCE)
            self.assertTrue(said, read(process.log))
            process.terminate()
            process.wait(10)
        for wrong in ("x", "0", "1:", "70000", "1:2:3", ""):
            self.assertEqual(self.home.run("forward", "target", "worker-0", wrong)[0], 2, wrong)
        self.stop()


if __name__ == "__main__":
    unittest.main()
