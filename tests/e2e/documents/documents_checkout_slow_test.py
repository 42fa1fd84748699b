"""The documented commands that measure, and the one that formats, as printed, in a directory with the files that they name: small ones, so
that they take minutes. They build the release themselves. A command that says why it cannot be run here (exit code 77) is skipped."""
import os
import subprocess
import sys
import time
import unittest

import places
import sandbox
from sandbox import harness

# What the commands read. The words of the pairs and questions are in the text.
FILES = {"train.libsvm": sandbox.SPARSE * 20, "test.libsvm": sandbox.SPARSE,
         "wordsim353.tsv": "Word 1\tWord 2\tHuman (mean)\nheaven\tearth\t7.5\nking\tservant\t5.1\nwater\tstone\t2.3\n",
         "questions-words.txt": ": family\nfather mother son daughter\nson daughter father mother\n"}
TEXT_BYTES = 400_000
HOUR = 3600


class DocumentsCheckoutTest(unittest.TestCase):
    def setUp(self):
        self.box = sandbox.Sandbox(files=FILES)
        self.addCleanup(self.box.close)
        os.mkdir(os.path.join(self.box.root, "script"))
        with open(os.path.join(self.box.root, "TEXT"), "wb") as text:
            packed = os.path.join(harness.SOURCE, "examples/text/kjv.txt.zst")
            text.write(subprocess.run(["zstd", "-dcq", packed], stdout=subprocess.PIPE, check=True).stdout[:TEXT_BYTES])
        self.commands = {command.text: command for _, page in places.commands(harness.SOURCE, self.box, "checkout") for command in page}
        self.lint = [text for text in self.commands if text.startswith("script/lint")]

    def run_one(self, text, cwd):
        """The command's exit code and output, with this machine's own environment: compilers, packages and caches."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")}
        begin = time.monotonic()
        done = subprocess.run(["bash", "-o", "pipefail", "-c", text], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=2 * HOUR, check=False)
        print(f"{time.monotonic() - begin:7.1f} s  exit code {done.returncode}  {self.commands[text]}", flush=True)
        return done.returncode, done.stdout

    def test_measurements_end_well(self):
        """Each prints a table in Markdown."""
        for name in {text.split()[0] for text in self.commands}:
            starter = os.path.join(self.box.root, name)
            with open(starter, "w", encoding="utf-8") as script:
                script.write(f'#!/bin/sh\nexec {os.path.join(harness.SOURCE, name)} "$@"\n')
            os.chmod(starter, 0o755)
        for text in self.commands:
            if text in self.lint:
                continue
            with self.subTest(command=text):
                code, said = self.run_one(text, self.box.root)
                if code == 77:
                    print("    skipped: " + said.strip().splitlines()[-1], flush=True)
                    continue
                self.assertEqual(code, 0, said[-4000:])
                self.assertRegex(said, r"(?m)^\| --- ")

    def test_formatting_mends_a_file_and_changes_no_other(self):
        """In a copy of the checkout."""
        copy = os.path.join(self.box.root, "copy")
        names = subprocess.run(["git", "-C", harness.SOURCE, "ls-files", "-z", "-co", "--exclude-standard"], stdout=subprocess.PIPE, check=True,
                               text=True).stdout.split("\0")
        os.mkdir(copy)
        subprocess.run(["tar", "-C", harness.SOURCE, "--ignore-failed-read", "-c", "--null", "-T", "-", "-f", copy + ".tar"], text=True, check=True,
                       input="\0".join(name for name in names if name))
        subprocess.run(["tar", "-C", copy, "-xf", copy + ".tar"], check=True)
        for words in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", "-C", copy, *words], check=True)
        file = os.path.join(copy, "src/base/status.h")
        with open(file, encoding="utf-8") as text:
            before = text.read()
        with open(file, "w", encoding="utf-8") as text:
            text.write(before.replace("\n  ", "\n      ").replace("{\n", "\n{\n"))
        self.assertEqual(len(self.lint), 1)
        code, said = self.run_one(self.lint[0], copy)
        self.assertEqual(code, 0, said[-4000:])
        changed = subprocess.run(["git", "-C", copy, "status", "--porcelain"], stdout=subprocess.PIPE, check=True, text=True).stdout
        self.assertEqual([line for line in changed.splitlines() if not line.startswith("A  ")], [])


if __name__ == "__main__":
    if not os.path.isdir(os.path.join(harness.SOURCE, ".git")) and not os.path.isfile(os.path.join(harness.SOURCE, ".git")):
        print("skipped: this is no checkout of git")
        sys.exit(77)
    unittest.main(verbosity=2)
