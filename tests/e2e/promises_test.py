"""What a job file and a command promise: paths, plans, exit codes, names of jobs, help, completion and what is told of fields that
an engine does nothing with."""
import json
import os
import re
import subprocess
import unittest

import harness

TRAIN = """\
framework: shoal
learn: {algorithm: word2vec, dim: 10, min_count: 1, epochs: 1}
data: {train: text.txt}
outputs: {model: vectors}
"""


class Promises(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        os.mkdir(self.home.path("jobs"))

    def job(self, text, name="jobs/job.yaml"):
        return self.home.write(name, text)


class PathTest(Promises):
    """Relative paths begin at the job file's directory, wherever the command is given."""

    def test_data_and_outputs_lie_beside_the_file(self):
        self.home.write("jobs/text.txt", "a b c d e f\n" * 200)
        code, out, err = self.home.run("run", self.job(TRAIN), cwd="/")
        self.assertEqual((code, err), (0, ""), out)
        self.assertTrue(os.path.exists(self.home.path("jobs", "vectors", "vectors.txt")))

    def test_programs_start_beside_the_file(self):
        file = self.job("roles: {a: {command: [pwd]}}")
        code, out, _ = self.home.run("run", file, cwd="/")
        self.assertEqual(code, 0)
        self.assertIn(f"a-0 | {self.home.path('jobs')}\n", out)
        code, out, _ = self.home.run("run", file, "--directory", self.home.tmp)
        self.assertIn(f"a-0 | {self.home.tmp}\n", out)

    def test_files_are_those_beside_the_file(self):
        self.home.write("jobs/here.txt", "found")
        code, out, err = self.home.run("run", self.job("files: .\ncommand: [cat, here.txt]\n"), cwd=self.home.tmp)
        self.assertEqual(code, 0, out + err)
        self.assertIn("found", out)

    def test_set_is_seen_from_the_working_directory(self):
        self.home.write("tmp/text.txt", "a b c d e f\n" * 200)
        code, out, err = self.home.run("run", self.job(TRAIN), "--set", "data.train=text.txt", "--set", "outputs.model=out",
                                       cwd=self.home.tmp)
        self.assertEqual(code, 0, out + err)
        self.assertTrue(os.path.exists(os.path.join(self.home.tmp, "out", "vectors.txt")))

    def test_a_job_of_standard_input_begins_at_the_working_directory(self):
        with open(self.job("roles: {a: {command: [pwd]}}"), "rb") as job:
            done = subprocess.run([self.home.binary, "run", "-"], stdin=job, capture_output=True, cwd=self.home.tmp,
                                  env=self.home.environ(), check=False, timeout=60 * harness.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"| {self.home.tmp}\n".encode(), done.stdout)

    def test_plan_for_docker_shows_all_mounts(self):
        self.home.write("jobs/text.txt", "a b c\n")
        code, out, err = self.home.run("plan", self.job("image: i\ncontainer: {volumes: ['in:/in:ro']}\n" + TRAIN),
                                       "--engine", "docker", cwd="/")
        self.assertEqual(code, 0, err)
        for source in ("in", "text.txt"):
            self.assertIn(self.home.path("jobs", source), out)
        self.assertIn(self.home.path("jobs"), out)


class PlanTest(Promises):
    """`plan` refuses what `run` refuses, with line and column."""

    def both(self, text, *arguments):
        file = self.job(text)
        planned = self.home.run("plan", file, *arguments)
        ran = self.home.run("run", file, *arguments)
        self.assertEqual(planned, ran)
        self.assertEqual((planned[0], planned[1]), (2, ""))
        return planned[2]

    def test_missing_outputs(self):
        self.home.write("jobs/text.txt", "a b c\n")
        self.assertRegex(self.both(TRAIN.replace("outputs: {model: vectors}\n", "")),
                         r"job.yaml:1:1: outputs.model: missing; expected the directory for the vectors, such as ")

    def test_missing_data(self):
        self.assertIn(self.home.path("jobs", "text.txt"), self.both(TRAIN))

    def test_wrong_format(self):
        self.assertRegex(self.both(TRAIN.replace("text.txt", "{source: text.txt, format: csv}")),
                         r"job.yaml:3:42: data.train.format: got csv, expected text")

    def test_misspelt_parameters_and_algorithms(self):
        self.assertRegex(self.both(TRAIN.replace("dim", "dimm")), r"job.yaml:2:36: learn.dimm: unknown parameter; did you mean dim\?")
        self.assertRegex(self.both(TRAIN.replace("dim:", "xyzzyqwertz:")), r"`shoal train word2vec --help` lists them")
        self.assertRegex(self.both(TRAIN.replace("word2vec", "word3vec")), r"job.yaml:2:20: learn.algorithm: got word3vec")

    def test_fields_whose_loss_would_change_the_data(self):
        self.assertRegex(self.both("command: [a]\nstore: /mnt/x\n"), r"job.yaml:2:8: store: .*SHOAL_HOME")

    def test_unknown_engine_of_the_environment(self):
        code, _, err = self.home.run("plan", self.job("command: [a]\n"), env={"SHOAL_ENGINE": "dokcer"})
        self.assertEqual(code, 2, err)
        self.assertIn("dokcer", err)


    def test_a_directory_of_files_that_is_not_there(self):
        self.assertRegex(self.both("command: [a]\nfiles: nowhere\n"), r"job.yaml:2:8: files: got .*/nowhere, expected a directory")

    def test_an_empty_command(self):
        self.assertRegex(self.both("command: []\n"), r"job.yaml:1:10: command: got an empty list, expected a list of words")

    def test_a_pattern_that_matches_nothing(self):
        self.assertIn("no*.txt does not exist, and as a pattern it matches no file", self.both(TRAIN.replace("text.txt", "'no*.txt'")))


class PatternTest(Promises):
    """Patterns among the data of framework shoal are the files that match them."""

    def test_in_a_job_file_and_on_the_command_line(self):
        os.mkdir(self.home.path("jobs", "news"))
        for name, word in (("b", "second"), ("a", "first"), ("[x]", "odd")):
            self.home.write(f"jobs/news/{name}.txt", f"{word} of the words\n" * 200)
        for source, words in (("news/[ab].txt", {"first", "second"}), ("news/*.txt", {"first", "second", "odd"}), ("news/[x].txt", {"odd"})):
            with self.subTest(source):
                code, out, err = self.home.run("run", self.job(TRAIN.replace("text.txt", f"'{source}'")), cwd="/")
                self.assertEqual(code, 0, out + err)
                self.assertEqual(set(harness.read_vectors(self.home.path("jobs", "vectors", "vectors.bin"))) - {"of", "the", "words", "</s>"}, words)
        code, _, err = self.home.run("train", "word2vec", "--data", "jobs/news/[ab].txt", "--output", "v", "--dim", "10")
        self.assertEqual(code, 0, err)
        self.assertIn("second", harness.read_vectors(self.home.path("v", "vectors.bin")))


class ToldTest(Promises):
    """Fields that an engine does nothing with."""

    JOB = "command: [echo, hi]\nimage: i\ncontainer: {pids: 99}\nqueue: research\npriority: 7\n"

    def test_notes_before_the_start(self):
        code, out, err = self.home.run("run", self.job(self.JOB))
        self.assertEqual(code, 0, err)
        notes = [line for line in err.splitlines() if line.startswith("shoal: note: ")]
        self.assertEqual([re.sub(r".*job.yaml:(\d+):\d+: ([a-z.]+): .*", r"\1 \2", note) for note in notes],
                         ["4 queue", "5 priority", "2 image", "3 container.pids"])
        self.assertIn("hi", out)
        self.assertEqual(self.home.run("run", "-q", self.job(self.JOB)), (0, "", ""))

    def test_only_where_it_is_so(self):
        code, _, err = self.home.run("plan", self.job(self.JOB), "--engine", "docker")
        self.assertEqual(code, 0, err)
        self.assertNotIn("image:", err)
        self.assertNotIn("pids", err)
        self.assertIn("priority:", err)

    def test_an_imported_image_is_told_for_the_local_engine_only(self):
        app = self.home.write("app.json", json.dumps({"id": "/a", "cmd": "true", "instances": 1,
                                                      "container": {"docker": {"image": "acme/x"}}}))
        self.assertIn("image:", self.home.run("plan", app)[2])
        self.assertNotIn("local", self.home.run("plan", app, "--engine", "docker")[2])


class UnreachableTest(Promises):
    """Exit code 5."""

    def test_each_engine(self):
        file = self.job("image: i\nkubernetes: {launcher: x}\ncommand: [a]\n")
        empty = {"PATH": self.home.tmp, "HOME": self.home.tmp, "KUBECONFIG": "", "SLURM_CONF": self.home.path("none"),
                 "DOCKER_HOST": "unix://" + self.home.path("no.sock"), "SHOAL_MARATHON_URL": "http://127.0.0.1:1"}
        for engine in ("docker", "slurm", "marathon", "kubernetes"):
            with self.subTest(engine=engine):
                code, _, err = self.home.run("run", file, "--engine", engine, env=empty)
                self.assertEqual(code, 5, err)
        self.assertEqual(self.home.run("run", file, "--set", "command=[no-such-program]")[0], 1)


class NameTest(Promises):
    def test_several_jobs_of_a_name_mean_the_one_that_lives(self):
        file = self.job("name: same\ncommand: ['true']\n")
        for _ in range(2):
            self.assertEqual(self.home.run("run", file)[0], 0)
        code, _, err = self.home.run("show", "same")
        self.assertEqual(code, 2, err)
        self.job("name: same\ncommand: [sh, -c, 'echo ready; exec sleep 100']\n")
        process = self.home.start("run", file)
        harness.poll_until(lambda: "ready" in harness.said(process), 30 * harness.PATIENCE)
        code, out, err = self.home.run("show", "same", "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["state"], "running")
        self.assertEqual(self.home.run("stop", "same", "--now")[0], 0)
        process.wait(20 * harness.PATIENCE)

    def test_outputs_of_a_task_that_is_not_there(self):
        self.assertEqual(self.home.run("run", self.job("name: out\nroles: {worker: {command: ['true']}}\n"))[0], 0)
        self.assertEqual(self.home.run("outputs", "out", "--task", "worker-0")[0], 0)
        code, _, err = self.home.run("outputs", "out", "--task", "worker-9")
        self.assertEqual(code, 4, err)
        self.assertIn("has no task worker-9; did you mean worker-0?", err)

    def test_attempts_are_counted_from_one(self):
        self.assertEqual(self.home.run("run", self.job("name: once\ncommand: [echo, hi]\n"))[0], 0)
        code, _, err = self.home.run("logs", "once", "task-0", "--attempt", "2")
        self.assertEqual(code, 4)
        self.assertIn("task-0, attempt 2, has printed nothing; there are lines of task-0 (attempt 1)", err)
        self.assertEqual(self.home.run("logs", "once", "task-0", "--attempt", "1")[:2], (0, "hi\n"))


class CommandTest(Promises):
    def test_help_of_a_command(self):
        self.assertEqual(self.home.run("help", "run"), self.home.run("run", "--help"))
        self.assertEqual(self.home.run("help", "train", "word2vec"), self.home.run("train", "word2vec", "--help"))
        self.assertEqual(self.home.run("help"), self.home.run("--help"))
        code, _, err = self.home.run("help", "rnu")
        self.assertEqual(code, 2)
        self.assertIn("did you mean `shoal run`?", err)

    def test_what_is_missing_is_named_with_what_is_expected(self):
        for arguments, code, words in ((("train",), 2, "got no subcommand, expected one of word2vec, linear, logistic, fm, ffm"),
                                       (("nearest", "v", "king"), 4, "no model or vectors file v; expected the --output of `shoal train word2vec`"),
                                       (("nearest",), 2, "MODEL is required"),
                                       (("predict", "v", "--data", "x"), 4, "no linear model in v; expected the --output of `shoal train logistic`"),
                                       (("tables", "j", "--row", "1"), 2, "--row: got no table, expected its name before it")):
            with self.subTest(arguments):
                ended, out, err = self.home.run(*arguments)
                self.assertEqual((ended, out), (code, ""), err)
                self.assertIn(words, err)

    def test_names_that_are_not_utf8(self):
        code, _, err = self.home.run("train", "word2vec", "--data", b"caf\xe9.txt", "--output", "v")
        self.assertEqual(code, 2)
        self.assertIn("got the name 'caf\\xe9.txt', expected UTF-8", err)

    def test_a_role_that_is_not_there_is_not_scaled(self):
        self.home.start("run", self.job("name: up\nroles:\n  worker: {replicas: 1, max: 2, command: [sleep, '100']}\n  server: {command: [sleep, '100']}\n"))
        self.assertTrue(harness.poll_until(lambda: '"running"' in self.home.run("jobs", "--json")[1], 30 * harness.PATIENCE))
        code, _, err = self.home.run("scale", "up", "sever=3")
        self.assertEqual(code, 1, err)
        self.assertRegex(err, "not scaled: sever: the job has no such role, expected one of: (server, worker|worker, server)")

    def test_rebalance_beside_drain(self):
        code, _, err = self.home.run("tables", "any", "--rebalance", "--drain", "1")
        self.assertEqual(code, 2)
        self.assertIn("expected one of them", err)

    def complete(self, *words):
        script = ('source <("$0" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shoal; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, self.home.binary, "shoal", *words], capture_output=True, check=True,
                              env=self.home.environ({"PATH": os.path.dirname(self.home.binary) + ":" + os.environ["PATH"]}))
        return done.stdout.decode().split()

    def test_bash_completes_files_where_no_word_is_wanted(self):
        self.assertEqual(self.complete("run", ""), [])  # then -o default names files
        self.assertEqual(self.complete("run", "--se"), ["--set", "--server"])
        self.assertEqual(self.complete("tr"), ["train"])
        self.assertIn("word2vec", self.complete("train", ""))

    def test_a_cause_is_printed_in_full_last(self):
        line = "shoal: it cannot be done, because " + "x" * 300 + "; set THIS to mend it"
        self.home.write("jobs/line", line + "\n")
        code, out, err = self.home.run("run", self.job("command: [sh, -c, 'cat line; exit 2']\nroles: {w: 1}\n"))
        self.assertEqual(code, 1)
        self.assertTrue(err.rstrip().endswith("; set THIS to mend it"), err)
        self.assertEqual(out.count("it cannot be done"), 1, out)  # the task's own line
        self.assertEqual(err.count("it cannot be done"), 1, err)


if __name__ == "__main__":
    unittest.main()
