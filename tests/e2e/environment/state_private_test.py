"""The state home's files are their user's alone. SHOAL_BIN names the binary."""
import os
import stat
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

SECRET = "name: secret\nenv: {PASSWORD: hunter2}\ncommand: [sh, -c, 'echo done']\n"


class PrivateTest(harness.JobsTest):
    def test_in_a_directory_that_others_may_enter(self):
        os.mkdir(self.home.home)
        os.chmod(self.home.home, 0o755)
        before = os.umask(0)
        try:
            code, _, err = self.go(SECRET)
        finally:
            os.umask(before)
        self.assertEqual(code, 0, err)
        for root, _, files in os.walk(self.home.home):
            closed = root != self.home.home and stat.S_IMODE(os.stat(root).st_mode) & 0o077 == 0
            for name in files:
                mode = stat.S_IMODE(os.stat(os.path.join(root, name)).st_mode)
                self.assertTrue(closed or mode & 0o077 == 0, f"{root}/{name} {mode:o}")

    def test_a_directory_that_everybody_may_write_is_refused(self):
        os.mkdir(self.home.home)
        os.chmod(self.home.home, 0o777)
        code, _, err = self.home.run("jobs")
        self.assertEqual(code, 3, err)
        self.assertIn("chmod o-w", err)


if __name__ == "__main__":
    unittest.main()
