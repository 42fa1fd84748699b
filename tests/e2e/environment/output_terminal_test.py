"""What a terminal gets: escapes where it knows them, letters that its locale has, lines within its width; and the time for which a job
ran, without that for which it was suspended."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

JOB = """\
name: shown
framework: shoal
learn: {algorithm: word2vec, dim: 10, min_count: 1, epochs: 1}
data: {train: text.txt}
roles: {worker: 2, server: 1}
outputs: {model: vectors}
"""
SAVING = "name: paused\ncommand: [sh, -c, 'test $SHOAL_ATTEMPT != 0 || { echo up; exec sleep 1000; }']\n"
ESCAPE = "\x1b"
HOUR = 3600


class OutputTerminalTest(harness.JobsTest):
    def on_terminal(self, *arguments, columns=80, **variables):
        """Runs `shoal ARGUMENTS` on a terminal: its exit code and all that it wrote there."""
        environ = {name: value for name, value in self.home.environ().items() if not re.match("LC_|LANG|TERM|NO_COLOR", name)}
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([self.home.binary, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, cwd=self.home.root,
                                   env={**environ, **variables}, start_new_session=True)
        os.close(theirs)
        self.addCleanup(os.close, ours)
        written = b""
        while True:
            try:
                written += os.read(ours, 65536)
            except OSError:  # the other end is closed
                return process.wait(60 * harness.PATIENCE), written.decode()

    def run_job(self, **options):
        self.home.write("text.txt", "the king and the queen\n" * 100)
        code, written = self.on_terminal("run", self.home.write("job.yaml", JOB), **options)
        self.assertEqual(code, 0, written)
        self.assertIn("shown-", written)
        return written

    def test_escapes_where_the_terminal_knows_them(self):
        for variables, expected in (({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"TERM": ""}, False), ({}, False)):
            with self.subTest(variables=variables):
                self.assertEqual(ESCAPE in self.run_job(**variables), expected)

    def test_colors(self):
        self.assertRegex(self.run_job(TERM="xterm"), ESCAPE + r"\[[0-9;]*m")
        self.assertNotRegex(self.run_job(TERM="xterm", NO_COLOR="1"), ESCAPE + r"\[[0-9;]*m")

    def test_the_first_variable_of_the_locale_that_is_set_decides(self):
        for variables, expected in (({"LANG": "C.UTF-8"}, True), ({"LANG": "C.UTF-8", "LC_ALL": "C"}, False), ({"LANG": "C", "LC_ALL": "C.utf8"}, True),
                                    ({"LANG": "C.UTF-8", "LC_CTYPE": "POSIX"}, False), ({"LANG": "C", "LC_ALL": "", "LC_CTYPE": "en_US.utf-8"}, True),
                                    ({"LANG": "de_DE@euro"}, False), ({}, False)):
            with self.subTest(variables=variables):
                self.assertEqual(any(ord(c) > 127 for c in self.run_job(TERM="xterm", **variables)), expected)

    def test_a_narrow_terminal_has_whole_lines_of_the_block(self):
        written = self.run_job(TERM="xterm", LANG="C.UTF-8", columns=20)
        block = re.findall(r"[^\r\n]*\r?\n", re.sub(ESCAPE + r"\[[0-9;?]*[A-Za-z]", "", written))
        tasks = [line.strip() for line in block if "worker" in line and "|" not in line]
        self.assertEqual([line for line in tasks if len(line) > 20], [])

    def resumed_an_hour_later(self, *arguments):
        """Standard output of `resume` of a job that was suspended an hour before, by the clock."""
        process = self.start_job(SAVING, "up")
        self.assertEqual(self.home.run("suspend", "paused")[0], 0)
        self.assertEqual(process.wait(60 * harness.PATIENCE), 130)
        shim = os.path.join(harness.SOURCE, "tests", "e2e", "clock_shim.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.home.path("clock.so"), shim], check=True)
        later = {"LD_PRELOAD": self.home.path("clock.so"), "CLOCK_OFF_BY": str(HOUR)}
        code, out, err = self.home.run("resume", "paused", *arguments, env=later)
        self.assertEqual(code, 0, err)
        return out

    def test_time_for_which_a_job_was_suspended_is_left_out(self):
        self.assertRegex(self.resumed_an_hour_later(), r"succeeded after [\d.]+ m?s\n")
        shown = self.home.run("show", "paused")[1]
        self.assertRegex(shown, r"\+1 h \d\d min +pending +resumed")
        for printed in (re.search(r"^ran .*$", shown, re.M).group(), self.home.run("jobs")[1].splitlines()[1]):
            self.assertNotRegex(printed, r"\d (h|min)\b")

    def test_and_of_the_seconds_that_programs_read(self):
        self.assertLess(json.loads(self.resumed_an_hour_later("--json").splitlines()[-1])["seconds"], HOUR / 2)


if __name__ == "__main__":
    unittest.main()
