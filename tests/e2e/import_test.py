"""Foreign job descriptions, run as they are by the real binary: they end by their own rules and leave nothing.
SHOAL_BIN names the binary, SHOAL_SOURCE the checkout with examples/import."""
import json
import os
import shutil
import time
import unittest

import harness

SOURCE = os.environ.get("SHOAL_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
EXAMPLES = os.path.join(SOURCE, "examples", "import")
TFJOB = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: rules}
spec:
  runPolicy: {backoffLimit: 2}
  tfReplicaSpecs:
    PS: {replicas: 1, template: {spec: {containers: [{name: tensorflow, command: [sleep, "600"]}]}}}
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template: {spec: {containers: [{name: tensorflow, command: [sh, -c, '%s']}]}}
"""


class ImportTest(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)

    def run_file(self, path, *arguments, seconds=60):
        # Not in the checkout, where the examples are.
        code, out, err = self.home.run("run", path, "--directory", self.home.root, *arguments, seconds=seconds)
        self.assertNotEqual(code, -9, out + err)
        self.assertEqual(self.home.leftovers(), [])
        return code, out, err

    def needs(self, framework):
        path = self.home.write("probe.yaml", f"framework: {framework}\ncommand: [\"true\"]\nroles: {{worker: 1, ps: 1}}\n")
        if "not supported" in self.home.run("plan", path)[2]:
            self.skipTest(f"framework {framework} is not there yet")


class VolcanoTest(ImportTest):
    def test_the_workers_end_completes_the_job_and_failed_pods_restart(self):
        code, out, err = self.run_file(os.path.join(EXAMPLES, "volcano.yaml"))
        self.assertEqual(code, 0, out + err)
        self.assertEqual(out.count("worker-0 | worker 0 of 2"), 2, out)  # exit 3, then well
        self.assertEqual(out.count("worker-1 | worker 1 of 2"), 2, out)
        self.assertIn("image: the engine local ignores it", err)

    def test_commands_find_the_hosts_in_variables_and_files(self):
        path = os.path.join(EXAMPLES, "volcano-hosts.yaml")
        code, out, err = self.run_file(path)
        self.assertEqual(code, 0, out + err)
        self.assertIn('worker-0 | {ps: ["127.0.0.1:2222","127.0.0.1:2222",], worker: ["127.0.0.1:2222",], index: 0}', out)
        self.assertIn("worker-0 | 2 of ps at 127.0.0.1,127.0.0.1", out)
        code, out, err = self.home.run("plan", path, "--env", "ps-1")
        self.assertEqual(code, 0, err)
        for line in ("VC_PS_HOSTS=ps-0,ps-1", "VC_PS_NUM=2", "VC_WORKER_HOSTS=worker-0", "VC_WORKER_NUM=1",
                     "VC_TASK_INDEX=1", "VK_TASK_INDEX=1"):
            self.assertIn(line, out.splitlines())

    def test_terminate_job_on_failure_fails_it(self):
        path = self.home.write("v.yaml", """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: ends}
spec:
  policies: [{event: PodFailed, action: TerminateJob}]
  tasks:
    - {name: a, template: {spec: {restartPolicy: Never, containers: [{command: [sh, -c, "exit 7"]}]}}}
    - {name: b, template: {spec: {restartPolicy: Never, containers: [{command: [sleep, "600"]}]}}}
""")
        code, out, err = self.run_file(path)
        self.assertEqual(code, 1, out + err)
        self.assertIn("exited with 7", out + err)


JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: c, %s}]}}}
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n"


class DocumentsTest(ImportTest):
    def file_of(self, first):
        jobs = [JOB % ("first", f"command: {first}"), CONFIG, JOB % ("second", "command: [echo, ran-second]")]
        return self.home.write("jobs.yaml", "---\n".join(jobs))

    def test_the_jobs_of_a_file_are_run_one_after_another(self):
        code, out, err = self.run_file(self.file_of("[echo, ran-first]"))
        self.assertEqual(code, 0, out + err)
        self.assertLess(out.index("ran-first"), out.index("ran-second"))
        self.assertIn("job 2 of 2", err)
        self.assertIn("'ConfigMap' 'beside'", err)

    def test_those_behind_one_that_fails_are_not_run(self):
        code, out, err = self.run_file(self.file_of("[sh, -c, 'exit 3']"))
        self.assertEqual(code, 1, out + err)
        self.assertNotIn("ran-second", out)
        self.assertIn("the remaining jobs are not run", err)

    def test_one_of_them_is_chosen(self):
        path = self.file_of("[echo, ran-first]")
        code, out, err = self.run_file(path, "--document", "second")
        self.assertEqual(code, 0, out + err)
        self.assertNotIn("ran-first", out)
        code, out, err = self.home.run("plan", path)
        self.assertEqual(code, 2, out + err)
        self.assertIn("choose with --document: 1 'first'", err)
        self.assertEqual(self.home.run("plan", path, "--document", "3")[0], 0)


class EntryPointTest(ImportTest):
    def test_only_docker_asks_for_it(self):
        path = self.home.write("entry.yaml", JOB % ("entry", "image: 'train:3', args: [--lr, '0.1']"))
        code, out, err = self.home.run("plan", path)
        self.assertEqual(code, 2, out + err)
        self.assertIn("only --engine docker resolves it", err)
        code, out, err = self.home.run("plan", path, "--engine", "docker")
        self.assertEqual(code, 0, out + err)
        self.assertIn("train:3", out)


class MarathonTest(ImportTest):
    def test_ports_are_told_by_marathons_names_and_a_good_end_is_the_end(self):
        code, out, err = self.run_file(os.path.join(EXAMPLES, "marathon-service.json"))
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, r"hello-0 \| port \d+ and \d+")
        self.assertIn("ended well has ended", err)


class JobSetTest(ImportTest):
    def test_the_drivers_end_is_the_jobs_and_hosts_are_those_of_tasks(self):
        code, out, err = self.run_file(os.path.join(EXAMPLES, "jobset.yaml"))
        self.assertEqual(code, 0, out + err)
        self.assertIn("driver-0 | driver at 127.0.0.1", out)
        for index in range(4):
            self.assertIn(f"worker-{index} | worker {index % 2} looks for tcp://127.0.0.1:5555", out)


class MpiTest(ImportTest):
    def test_ranks_start_in_the_workers(self):
        if shutil.which("mpirun") is None:
            self.skipTest("there is no mpirun")
        code, out, err = self.run_file(os.path.join(EXAMPLES, "mpijob.yaml"))
        self.assertEqual(code, 0, out + err)
        for rank in "01":
            self.assertIn(f"rank {rank} of 2", out)


class TfJobTest(ImportTest):
    def setUp(self):
        super().setUp()
        self.needs("tensorflow")

    def test_the_chiefs_end_is_the_jobs(self):
        begin = time.monotonic()
        code, out, err = self.run_file(os.path.join(EXAMPLES, "tfjob.yaml"))
        self.assertEqual(code, 0, out + err)
        self.assertIn("chief sees", out)
        self.assertLess(time.monotonic() - begin, 40 * harness.PATIENCE)  # its workers sleep for 60 s

    def test_worker_zero_ends_a_job_without_chief(self):
        script = 'test "$SHOAL_INDEX" = 0 || exec sleep 600'
        code, out, err = self.run_file(self.home.write("tf.yaml", TFJOB % script))
        self.assertEqual(code, 0, out + err)

    def test_exit_code_below_128_is_final(self):
        code, out, err = self.run_file(self.home.write("tf.yaml", TFJOB % "echo begun; exit 3"))
        self.assertEqual(code, 1, out + err)
        self.assertEqual(out.count("worker-0 | begun"), 1, out)

    def test_exit_code_from_128_is_retried_up_to_the_backoff_limit(self):
        script = 'echo begun; test "$SHOAL_INDEX" = 0 || exec sleep 600; exit 138'
        code, out, err = self.run_file(self.home.write("tf.yaml", TFJOB % script))
        self.assertEqual(code, 1, out + err)
        self.assertEqual(out.count("worker-0 | begun"), 3, out)


    def test_the_active_deadline_ends_all_of_it_and_the_record_goes_after_its_time(self):
        policy = "runPolicy: {activeDeadlineSeconds: 1, cleanPodPolicy: None, ttlSecondsAfterFinished: 0}"
        begin = time.monotonic()
        code, out, err = self.run_file(self.home.write("tf.yaml", (TFJOB % "exec sleep 600").replace(
            "runPolicy: {backoffLimit: 2}", policy)))
        self.assertEqual(code, 1, out + err)
        self.assertIn("exceeded its deadline of 1.0 s", err)
        self.assertLess(time.monotonic() - begin, 15 * harness.PATIENCE)  # servers too, though nobody stopped those of a TFJob
        gone = lambda: not self.home.run("jobs", "--all")[1].count("rules-")
        self.assertTrue(harness.poll_until(gone, 10 * harness.PATIENCE, 0.2))


class CommandTest(ImportTest):
    def test_what_import_prints_is_the_same_job(self):
        for name in ("volcano.yaml", "marathon-service.json", "mpijob.yaml"):
            with self.subTest(name):
                path = os.path.join(EXAMPLES, name)
                code, out, err = self.home.run("import", path)
                self.assertEqual(code, 0, err)
                own = self.home.write("own.yaml", out)
                plans = [self.home.run("plan", p, "--json")[1] for p in (path, own)]
                self.assertEqual(plans[0], plans[1])
                code, _, err = self.home.run("import", own)
                self.assertEqual(code, 0, err)
                self.assertIn("already", err)

    def test_losses_have_places(self):
        code, out, err = self.home.run("import", os.path.join(EXAMPLES, "volcano.yaml"), "--json")
        self.assertEqual(code, 0, err)
        told = json.loads(out)
        self.assertEqual(told["dialect"], "Volcano Job")
        self.assertTrue(told["losses"])
        for loss in told["losses"]:
            self.assertGreater(loss["line"], 0)
            self.assertTrue(loss["sentence"])

    def test_wrong_files_name_the_place_and_the_nearest_name(self):
        for text, says in (("apiVersion: kubeflow.org/v1\nkind: TFjob\n", "did you mean 'TFJob'"),
                           ("apiVersion: apps/v1\nkind: Deployment\n", "x.yaml:2:7"),
                           ('{"id": "/a", "cmd": "x", "instance": 2}', "did you mean 'instances'"),
                           ("nmae: x\n", "did you mean 'name'")):
            with self.subTest(says):
                code, _, err = self.home.run("run", self.home.write("x.yaml", text))
                self.assertEqual(code, 2, err)
                self.assertIn(says, err)

    def test_an_entry_point_can_be_given(self):
        path = os.path.join(self.home.root, "x.json")
        self.home.write("x.json", '{"id": "/a", "container": {"docker": {"image": "i"}}}')
        code, _, err = self.home.run("run", path)
        self.assertEqual(code, 2, err)
        self.assertIn("--set 'roles.a.command=", err)
        code, out, err = self.home.run("run", path, "--set", "roles.a.command=[echo, given]")
        self.assertEqual(code, 0, err)
        self.assertIn("given", out)


class SubmitDmlcTest(ImportTest):
    def test_the_programs_own_flags_stay_its_own(self):
        for words in (["./p", "--lr", "0.1", "data", "--queue", "3"], ["--", "./p", "--queue", "3", "-n", "1"]):
            code, out, err = self.home.run("submit-dmlc", "--num-workers", "2", "--num-servers", "1", "--print-job", *words)
            self.assertEqual(code, 0, err)
            command = [w for w in words if w != "--"]
            shown = [f'"{w}"' if w[0].isdigit() else w for w in command]
            self.assertIn(f"command: [{', '.join(shown)}]", out)

    def test_wrong_flags(self):
        for arguments, says in ((["--num-workers", "x", "./p"], "--num-workers: got 'x'"), (["./p"], "--num-workers is missing"),
                                (["--num-workers", "2"], "no command"),
                                (["--num-workers", "2", "--worker-memory", "1k", "./p"], "ends with g or m")):
            code, _, err = self.home.run("submit-dmlc", *arguments)
            self.assertEqual(code, 2, err)
            self.assertIn(says, err)

    def test_help_names_the_flags(self):
        for command in ("import", "submit-dmlc"):
            code, out, err = self.home.run(command, "--help")
            self.assertEqual(code, 0, err)
            self.assertIn("Examples:", out)
        self.assertIn("--num-servers", out)
        self.assertIn("--num-servers", self.home.run("completion", "bash")[1])


if __name__ == "__main__":
    unittest.main()
