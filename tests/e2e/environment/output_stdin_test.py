"""Job files that can be read only once: a FIFO, standard input."""
import os
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

JOB = 'name: hello\ncommand: [sh, -c, "echo hello"]\n'


class OutputStdinTest(harness.JobsTest):
    def shoal(self, *arguments, text=""):
        """Runs `shoal ARGUMENTS` with standard input: exit code, standard output, standard error."""
        done = subprocess.run([self.home.binary, *arguments], input=text.encode(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=self.home.environ(), cwd=self.home.root, check=False,
                              timeout=60 * harness.PATIENCE)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def from_fifo(self, text, *arguments):
        fifo = self.home.path(f"fifo-{len(os.listdir(self.home.root))}")
        os.mkfifo(fifo)

        def write():
            with open(fifo, "wb") as f:
                try:
                    f.write(text)
                except BrokenPipeError:
                    pass  # too long, and not read to its end

        writer = threading.Thread(target=write)
        writer.start()
        done = self.shoal(arguments[0], fifo, *arguments[1:])
        writer.join(30)
        return done

    def test_a_fifo(self):
        code, out, err = self.from_fifo(JOB.encode(), "plan")
        self.assertEqual(code, 0, err)
        self.assertIn("hello", out)
        code, out, err = self.from_fifo(b"roles: {worker: nine}\n", "plan")
        self.assertEqual(code, 2, err)
        self.assertIn(":1:17: roles.worker", err)
        code, _, err = self.from_fifo(b" " * (2 << 20), "plan")
        self.assertEqual(code, 2, err)

    def test_standard_input(self):
        code, out, err = self.shoal("run", "/dev/stdin", text=JOB)
        self.assertEqual(code, 0, err)
        self.assertIn("hello", out)
        code, out, err = self.shoal("plan", "/dev/stdin", "--json", text=JOB)
        self.assertEqual(code, 0, err)


if __name__ == "__main__":
    unittest.main()
