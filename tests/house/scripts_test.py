"""Every script says what it is for, refuses what it does not know, and the package list is well formed."""
import glob
import os
import shutil
import subprocess
import tempfile
import unittest

SOURCE = os.environ.get("SHOAL_SOURCE") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SCRIPTS = sorted(p for p in glob.glob(os.path.join(SOURCE, "script", "*")) if os.access(p, os.X_OK))


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=30, check=False)


class Scripts(unittest.TestCase):
    def test_all_are_there(self):
        names = {os.path.basename(p) for p in SCRIPTS}
        self.assertLessEqual({"bootstrap", "demo", "test", "bench", "lint", "ci", "faults", "frameworks", "package"}, names)

    def test_help(self):
        for script in SCRIPTS:
            with self.subTest(script):
                result = run(script, "--help")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(os.path.basename(script), result.stdout.splitlines()[0])

    def test_unknown_option_is_a_usage_error(self):
        for script in SCRIPTS:
            with self.subTest(script):
                result = run(script, "--no-such-option")
                self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                self.assertIn("--no-such-option", result.stderr)

    def test_syntax(self):
        for script in SCRIPTS + [os.path.join(SOURCE, ".ci", "run"), os.path.join(SOURCE, "script", "shell.sh")]:
            self.assertEqual(run("bash", "-n", script).returncode, 0, script)


class Packages(unittest.TestCase):
    def test_each_has_a_group_and_a_reason(self):
        with open(os.path.join(SOURCE, "tools", "packages.txt"), encoding="utf-8") as f:
            rows = [line.split(None, 2) for line in f if line.strip() and not line.startswith("#")]
        self.assertGreater(len(rows), 10)
        for row in rows:
            self.assertEqual(len(row), 3, row)
            self.assertLessEqual(set(row[1].split(",")), {"build", "test", "bench", "lint", "package", "frameworks", "cluster", "sql", "page"}, row)
        names = [row[0] for row in rows]
        self.assertEqual(len(names), len(set(names)), "a package stands twice")

    def bootstrap(self, *commands):
        """script/bootstrap cluster where all but kubernetes-client is installed and these commands are in PATH."""
        with tempfile.TemporaryDirectory() as place:
            def command(name, text):
                path = os.path.join(place, name)
                with open(path, "w", encoding="utf-8") as f:
                    f.write("#!/bin/bash\n" + text)
                os.chmod(path, 0o755)

            command("dpkg-query", 'for one in "${@:4}"; do [ "$one" = kubernetes-client ] || echo "installed $one"; done\n')
            command("apt-get", "exit 1\n")
            for name in commands:
                command(name, "exit 0\n")
            for name in os.listdir("/usr/bin"):
                if name != "kubectl" and not os.path.lexists(os.path.join(place, name)):
                    os.symlink(os.path.join("/usr/bin", name), os.path.join(place, name))
            return subprocess.run([os.path.join(SOURCE, "script", "bootstrap"), "cluster"], capture_output=True, text=True,
                                  check=False, env={"PATH": place, "TMPDIR": place})

    def test_one_whose_command_is_there_from_elsewhere_is_skipped(self):
        result = self.bootstrap("kubectl")
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
        self.assertIn("kubernetes-client", self.bootstrap().stdout)


if __name__ == "__main__":
    unittest.main()
