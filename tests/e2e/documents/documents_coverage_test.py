"""No command of a document escapes the tests: what they do not run is counted, every block and every option is known, and a command that
does not work is found."""
import os
import re
import signal
import subprocess
import sys
import unittest

import documented
import instead
import places
import sandbox
from sandbox import harness

# How many commands nothing runs as printed (instead.NOWHERE). One more needs a reason there and this number.
NOT_RUN = 2


class DocumentsCoverageTest(sandbox.DocumentTest):
    def test_each_block_is_known(self):
        unknown = [found for page in documented.pages(harness.SOURCE) for found in documented.unknown_blocks(harness.SOURCE, page)]
        self.assertEqual(unknown, [], "expected a command (PROGRAMS) or an entry of NOT_SHELL")

    def test_what_is_not_run(self):
        box = self.sandbox()
        found = {command.text for page in documented.pages(harness.SOURCE) for command in documented.of_page(harness.SOURCE, page)}
        found |= {command.text for command in box.examples(box.subcommands())}
        known = {*instead.INSTEAD, *instead.STAGES, *instead.NOWHERE}
        self.assertEqual(known - found, set(), "no document has these any more")
        self.assertEqual(len(instead.NOWHERE), NOT_RUN)
        # A stand-in for each, and none that hides a command: a suite, a stage, or a reason.
        self.assertEqual({*instead.STAGES, *instead.NOWHERE} - {*instead.INSTEAD}, set())
        self.assertEqual({text for text in instead.INSTEAD if not places.of(text)}, {text for text in {*instead.STAGES, *instead.NOWHERE} if not places.of(text)})
        self.assertEqual({places.of(text) for text in found} - {"", *(suite for suite, _ in places.RULES)}, set())
        self.assertGreater(len([text for text in found if text not in instead.INSTEAD]), 180)

    def test_stages_run_what_they_are_said_to(self):
        for command, (script, line) in instead.STAGES.items():
            with open(os.path.join(harness.SOURCE, script), encoding="utf-8") as text, self.subTest(command=command):
                self.assertIn(line, text.read())
        with open(os.path.join(harness.SOURCE, "script/ci"), encoding="utf-8") as text:
            stages = text.read()
        for stage in ("docker script/test-cluster docker", "documents within_budget tests/e2e/documents/build_commands.py",
                      "kubernetes within_budget script/test-cluster kubernetes test_documented_commands"):
            self.assertIn("\nstage " + stage, stages)

    def test_options_in_the_text(self):
        """`shoal COMMAND --option` within sentences: command and options exist. Pages about design and formats name internal ones."""
        box = self.sandbox()
        helps = {}
        for page in documented.pages(harness.SOURCE):
            if page.startswith(("docs/design/", "docs/formats/")):
                continue
            with open(os.path.join(harness.SOURCE, page), encoding="utf-8") as text:
                lines = re.sub(r"```.*?```", "", text.read(), flags=re.S)
            for span in re.findall(r"`(shoal [a-z][^`]*)`", lines):
                words = re.split(r"\s+", span.replace("train …", "train word2vec"))[1:]
                words = words[:words.index("--")] if "--" in words else words
                path = words[:2] if words[0] == "train" and re.fullmatch("[a-z0-9]+", (words + [""])[1]) else words[:1]
                with self.subTest(page=page, command=span):
                    if tuple(path) not in helps:
                        helps[tuple(path)] = box.home.run(*path, "--help")
                    code, out, err = helps[tuple(path)]
                    self.assertEqual(code, 0, err)
                    known = re.findall(r"--?[a-z][a-z-]*", out)
                    self.assertEqual([w for w in words if re.match("--?[a-z]", w) and w.split("=")[0] not in known], [])

    def test_yaml_is_valid(self):
        """Each YAML block is a job, or the part of one that its page is about."""
        box = self.sandbox(files={"jobs/text.txt": sandbox.TEXT, "jobs/train.libsvm": sandbox.SPARSE, "jobs/test.libsvm": sandbox.SPARSE})
        for page in documented.pages(harness.SOURCE):
            for line, text in documented.yaml_of_page(harness.SOURCE, page):
                if text.startswith("engines:"):  # a file of engine instances, which each command reads
                    code, _, err = box.home.run("plan", box.home.write("at/jobs/job.yaml", sandbox.JOB),
                                                env={"SHOAL_ENGINES": box.home.write("at/jobs/engines.yaml", text)})
                    with self.subTest(where=f"{page}:{line}"):
                        self.assertEqual(code, 0, err)
                    continue
                if re.search("^flavors:", text, re.M):  # a policy of queues
                    code, _, err = box.home.run("simulate", box.home.write("at/jobs/none.jsonl", ""), "--policy",
                                                box.home.write("at/jobs/policy.yaml", text))
                    with self.subTest(where=f"{page}:{line}"):
                        self.assertEqual(code, 0, err)
                    continue
                for part in text.split("\n---\n"):  # jobs that wait for one another
                    part = re.sub(r"(source|train): (/[^ ,]*/)?text(8|\.txt)", r"\1: text.txt", part)
                    job = box.home.write("at/jobs/job.yaml", part)
                    code, _, err = box.home.run("plan", job)
                    if "got no command" in err:
                        box.home.write("at/jobs/job.yaml", "command: [a]\n" + part)
                        code, _, err = box.home.run("plan", job)
                    with self.subTest(where=f"{page}:{line}"):
                        if re.search(r"\btable: ", part):  # of a server's catalogue: nothing else is wrong with it
                            self.assertEqual((code, len(err.splitlines())), (2, 1), err)
                            self.assertIn("which only a server's catalogue knows", err)
                            continue
                        self.assertEqual(code, 0, err)

    def test_a_broken_command_is_found(self):
        box = self.sandbox()
        for text in ("shoal train word2vec --dta text.txt --output vectors", "shoal run vectros.yaml", "shoal tables mnist nothing",
                     "shoal plan job.yaml | false"):
            self.assertNotEqual(self.run_one(box, documented.Command("page", 1, text)), "", text)
        self.assertEqual(self.run_one(box, documented.Command("page", 1, "shoal plan job.yaml")), "")
        self.assertNotEqual(sandbox.check_script("script/bench word2vec --corpsu TEXT"), [])
        self.assertNotEqual(sandbox.check_script("script/bench wrod2vec"), [])

    def test_output_is_compared(self):
        shown = ["JOB            STATE    RAN", "hung-3b1f60    running  12 min", "…", "the end, 3 of them"]
        printed = "JOB          STATE    RAN\nhung-aaaaaa  running  3.5 s\nmore\nand more\nthe end, 14 of them\n"
        self.assertTrue(documented.matches(shown, printed))
        for wrong in (("running", "stalled"), ("hung-aaaaaa", "other-aaaaaa"), ("3.5 s", "a while"), ("the end", "an end")):
            self.assertFalse(documented.matches(shown, printed.replace(*wrong)), wrong)

    def test_lines_are_cut_where_their_explanation_begins(self):
        for line, command in (("shoal jobs   what runs", "shoal jobs"), ("a 'b  c' # d", "a 'b  c'"), ("a \"# b\"", "a \"# b\"")):
            self.assertEqual(documented.command_of(line), command)

    def test_nothing_is_left_of_a_killed_test(self):
        code = f"import sys; sys.path.insert(0, {sandbox.HERE!r}); import sandbox, signal; box = sandbox.Sandbox(); job = box.live('mnist'); " \
               "print(box.home.root, job, flush=True); signal.pause()"
        with subprocess.Popen([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE, text=True) as test:
            root, job = test.stdout.readline().split()
            marked = lambda: [pid for pid in os.listdir("/proc") if pid.isdigit() and root.encode() in harness.environ_of(pid)]  # noqa: E731
            self.assertGreater(len(marked()), 2)
            test.send_signal(signal.SIGKILL)
        self.assertTrue(harness.poll_until(lambda: not marked() and not os.path.exists(root), 30 * harness.PATIENCE, 0.05), marked())
        self.assertEqual(harness.cgroups_of({job}), [])


if __name__ == "__main__":
    unittest.main()
