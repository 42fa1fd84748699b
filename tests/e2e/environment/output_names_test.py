"""File names and words with escape sequences and in Latin-1: a terminal gets no control characters, --json is UTF-8, and a
pipe gets the bytes as they are."""
import json
import os
import pty
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

EVIL = b"clear\x1b[2Jtitle\x1b]0;evil\x07caf\xe9"
JOB = """\
name: names
command: [sh, -c, 'echo word > "$SHOAL_OUTPUT/$(cat %s)"']
"""


class OutputNamesTest(harness.JobsTest):
    def piped(self, *arguments):
        done = subprocess.run([self.home.binary, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=self.home.environ(), check=False, timeout=60 * harness.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def on_terminal(self, *arguments):
        """What a terminal gets from `shoal ARGUMENTS`."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(self.home.binary, [self.home.binary, *arguments], self.home.environ())
        shown = b""
        while True:
            try:
                block = os.read(terminal, 4096)
            except OSError:  # the other end is closed
                break
            if not block:
                break
            shown += block
        os.close(terminal)
        os.waitpid(pid, 0)
        return shown

    def assert_tame(self, *arguments):
        self.assertIn(EVIL, self.piped(*arguments))
        shown = self.on_terminal(*arguments)
        self.assertIn(b"cleartitle", shown)
        for one in (b"\x1b", b"\x07", b"\xe9"):
            self.assertNotIn(one, shown)
        text = self.piped(*arguments, "--json").decode("utf-8")
        self.assertIn("\\u001b]0;evil", text)
        return json.loads(text)

    def test_words(self):
        vectors = self.home.write("vectors.txt", b"3 2\nking 1 0\n" + EVIL + b" 0.9 0.1\nsea 0 1\n")
        answer = self.assert_tame("nearest", vectors, "king")
        self.assertEqual(answer["neighbours"][0]["word"], EVIL.decode("utf-8", "replace"))
        self.assert_tame("analogy", vectors, "sea", "sea", "king")

    def test_files(self):
        name = self.home.write("name", EVIL)
        code, _, err = self.go(JOB % name)
        self.assertEqual(code, 0, err)
        job = self.home.run("jobs", "--ids")[1].strip()
        answer = self.assert_tame("outputs", job)
        self.assertEqual([f["path"] for f in answer["files"]], [EVIL.decode("utf-8", "replace")])

    def test_complaints(self):
        shown = self.on_terminal("plan", b"no-such-\x1b[2Jfile")
        self.assertIn(b"no-such-file", shown)


if __name__ == "__main__":
    unittest.main()
