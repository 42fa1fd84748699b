"""What stands already where --output points: devices, FIFOs, links, modes, a directory that somebody is in."""
import os
import pty
import select
import shutil
import stat
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402


class OutputPlaceTest(harness.JobsTest):
    def setUp(self):
        super().setUp()
        self.data = self.home.write("data.svm", "".join(f"{i % 2} 1:{i % 2} 2:1\n" for i in range(200)))
        self.model = self.home.path("model")
        self.train(self.model)

    def train(self, output, cwd=None):
        code, _, err = self.home.run("train", "logistic", "--data", self.data, "--output", output, "--quiet", cwd=cwd)
        self.assertEqual(code, 0, err)

    def predict(self, output):
        code, _, err = self.home.run("predict", self.model, "--data", self.data, "--output", output)
        self.assertEqual(code, 0, err)

    def assert_predictions(self, path):
        with open(path, encoding="ascii") as f:
            self.assertEqual(len(f.readlines()), 200)

    def test_predictions_keep_what_they_replace(self):
        path = self.home.write("private", "old")
        os.chmod(path, 0o600)
        if os.geteuid() == 0:
            os.chown(path, 12345, 23456)
        before = os.stat(path)
        self.predict(path)
        self.assert_predictions(path)
        after = os.stat(path)
        self.assertEqual((after.st_mode, after.st_uid, after.st_gid), (before.st_mode, before.st_uid, before.st_gid))
        link = self.home.path("link")
        os.symlink(path, link)
        self.predict(link)
        self.assertTrue(os.path.islink(link))
        self.assert_predictions(path)

    def test_predictions_into_devices_and_fifos(self):
        # A terminal and a device of our own: a mistake must not cost the machine its /dev/null.
        ours, theirs = pty.openpty()
        name = os.ttyname(theirs)
        written = self.home.start("predict", self.model, "--data", self.data, "--output", name)
        shown = b""
        while shown.count(b"\n") < 200 and select.select([ours], [], [], 30 * harness.PATIENCE)[0]:
            shown += os.read(ours, 4096)
        self.assertEqual(shown.count(b"\n"), 200)
        self.assertEqual(written.wait(60 * harness.PATIENCE), 0)
        self.assertTrue(stat.S_ISCHR(os.stat(name).st_mode))
        os.close(ours)
        os.close(theirs)
        if os.geteuid() == 0:
            full = self.home.path("full")
            os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
            code, _, err = self.home.run("predict", self.model, "--data", self.data, "--output", full)
            self.assertEqual(code, 1, err)
            self.assertIn("No space left on device", err)
            self.assertTrue(stat.S_ISCHR(os.stat(full).st_mode))
        fifo = self.home.path("fifo")
        os.mkfifo(fifo)
        got = []

        def read():
            with open(fifo, encoding="ascii") as f:
                got.extend(f.readlines())

        reader = threading.Thread(target=read)
        reader.start()
        self.predict(fifo)
        reader.join(30)
        self.assertEqual(len(got), 200)
        self.assertTrue(stat.S_ISFIFO(os.stat(fifo).st_mode))
        code, out, err = self.home.run("predict", self.model, "--data", self.data, "--output", "/dev/stdout")
        self.assertEqual(code, 0, err)
        self.assertEqual(len(out.splitlines()), 201)  # and the summary

    def copy(self, *arguments):
        code, _, err = self.home.run("data", "copy", *arguments)
        return code, err

    def test_copies_keep_what_they_replace(self):
        private = self.home.write("secret", "bytes")
        os.chmod(private, 0o600)
        copied, old, link = (self.home.path(name) for name in ("copied", "old", "link"))
        self.home.write("old", "longer than before")
        os.symlink(old, link)
        for to in (copied, link):
            self.assertEqual(self.copy(private, to), (0, ""))
        self.assertEqual(stat.S_IMODE(os.stat(copied).st_mode), 0o600)
        self.assertTrue(os.path.islink(link))
        with open(old, encoding="ascii") as f:
            self.assertEqual(f.read(), "bytes")
        if os.geteuid() == 0:
            full = self.home.path("full")
            os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
            code, err = self.copy(private, full)
            self.assertEqual(code, 1, err)
            self.assertIn("No space left on device", err)
            self.assertTrue(stat.S_ISCHR(os.stat(full).st_mode))

    def test_copies_of_one_name_are_refused(self):
        for folder in ("a", "b"):
            os.makedirs(os.path.join(self.home.path("from"), folder))
        one = self.home.write("from/a/x", "1")
        two = self.home.write("from/b/x", "2")
        to = self.home.path("to")
        for sources in ((one, two), (os.path.join(self.home.path("from"), "*", "x"),)):
            code, err = self.copy(*sources, to)
            self.assertEqual(code, 2, err)
            self.assertIn("would both be copied to", err)
        self.assertFalse(os.path.exists(to))
        self.assertEqual(self.copy(self.home.path("from") + "/", to), (0, ""))
        for name, content in (("a/x", "1"), ("b/x", "2")):
            with open(os.path.join(to, name), encoding="ascii") as f:
                self.assertEqual(f.read(), content)

    def test_predictions_never_replace_what_they_are_made_from(self):
        link = self.home.path("to-data")
        os.symlink(self.data, link)
        weights = os.path.join(self.model, "weights.bin")
        for output, what in ((self.data, "one of the data files"), (link, "one of the data files"),
                             (weights, "a file of the model"), ("", "got an empty name")):
            code, out, err = self.home.run("predict", self.model, "--data", self.data, "--output", output)
            self.assertEqual(code, 2, output + out + err)
            self.assertIn(what, err)
        self.predict(self.home.path("predictions"))
        self.assert_predictions(self.home.path("predictions"))

    def test_files_of_two_models_are_no_model(self):
        other = self.home.path("other")
        code, _, err = self.home.run("train", "fm", "--data", self.data, "--output", other, "--quiet")
        self.assertEqual(code, 0, err)
        shutil.copy(os.path.join(other, "weights.bin"), self.model)
        os.remove(os.path.join(other, "factors.bin"))
        for model, what in ((self.model, "holds files of two models"), (other, "factors.bin is missing")):
            code, out, err = self.home.run("predict", model, "--data", self.data)
            self.assertEqual(code, 1, out + err)
            self.assertIn(what, err)

    def test_a_model_directory_keeps_its_mode_and_group(self):
        os.chmod(self.model, 0o2700)
        os.chmod(os.path.join(self.model, "weights.bin"), 0o640)
        if os.geteuid() == 0:
            os.chown(self.model, 12345, 23456)
            os.chmod(self.model, 0o2700)
        before = os.stat(self.model)
        self.train(self.model)
        after = os.stat(self.model)
        self.assertEqual((after.st_mode, after.st_uid, after.st_gid), (before.st_mode, before.st_uid, before.st_gid))
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.model, "weights.bin")).st_mode), 0o640)

    def test_the_shell_stays_in_the_directory(self):
        done = subprocess.run(["sh", "-c", '"$0" train logistic --data "$1" --output . --quiet && pwd -P && cat model.json',
                               self.home.binary, self.data], cwd=self.model, env=self.home.environ(), check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60 * harness.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.decode().startswith(self.model + "\n{"), done.stdout)


if __name__ == "__main__":
    unittest.main()
