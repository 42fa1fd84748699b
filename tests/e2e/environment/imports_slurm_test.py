"""Batch scripts of Slurm and jobs of Metronome, run as they are by the real binary, without either.
SHOAL_BIN names the binary, SHOAL_SOURCE the checkout with examples/import."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

EXAMPLES = os.path.join(harness.SOURCE, "examples", "import")


class SlurmScriptTest(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)

    def run_file(self, path, *arguments):
        code, out, err = self.home.run("run", path, *arguments, seconds=60)
        self.assertNotEqual(code, -9, out + err)
        self.assertEqual(self.home.leftovers(), [])
        return code, out, err

    def run_script(self, options, script, *arguments):
        return self.run_file(self.home.write("train.sh", f"#!/bin/bash\n#SBATCH {options}\n{script}\n"), *arguments)

    def program(self, name):
        """A program that prints its words: the directory that it is in."""
        path = self.home.write(name, f'#!/bin/sh\necho "{name} $* at $MASTER_ADDR:$MASTER_PORT"\n')
        os.chmod(path, 0o755)
        return os.path.dirname(path)

    def test_srun_starts_its_program_in_every_task(self):
        code, out, err = self.run_file(os.path.join(EXAMPLES, "slurm.sh"))
        self.assertEqual(code, 0, out + err)
        for rank in range(4):
            self.assertIn(f"hello from rank {rank} of 4, {rank % 2} on node {rank // 2}", out)
        self.assertEqual(out.count("hello from"), 4, out)
        self.assertIn("runs in each of the 4 tasks", err)

    def test_a_step_of_one_task_runs_once_and_the_scripts_end_counts(self):
        code, out, err = self.run_script("-n 3", 'srun -n 1 echo once; srun bash -c \'echo every; exit $((SLURM_PROCID == 2 ? 5 : 0))\'')
        self.assertEqual(code, 1, out + err)
        self.assertEqual(out.count("| once"), 1, out)
        self.assertIn("5", err)

    def test_a_step_has_the_tasks_that_srun_says(self):
        for options, step in (("--nodes=1 --exclusive", "-n 4"), ("--nodes=2", "--ntasks-per-node=2"), ("-N 2 --ntasks-per-node=1", "--ntasks 4")):
            code, out, err = self.run_script(options, f"srun {step} bash -c 'echo step $SLURM_PROCID of $SLURM_NTASKS'")
            self.assertEqual(code, 0, out + err)
            self.assertEqual(sorted(line.split("step ")[1] for line in out.splitlines() if "step " in line), [f"{i} of 4" for i in range(4)], out)

    def test_smaller_steps_are_counted_by_node_or_in_all(self):
        code, out, err = self.run_script("--nodes=2 --ntasks-per-node=3", """
srun --ntasks-per-node=1 bash -c 'echo node: $SLURM_PROCID of $SLURM_NTASKS on $SLURM_NODEID'
srun -n 2 bash -c 'echo first: $SLURM_PROCID of $SLURM_NTASKS'""")
        self.assertEqual(code, 0, out + err)
        said = sorted(line.split("] ")[1] for line in out.splitlines() if ": " in line)
        self.assertEqual(said, ["first: 0 of 2", "first: 1 of 2", "node: 0 of 2 on 0", "node: 1 of 2 on 1"], out)

    def test_a_step_of_more_tasks_than_the_job_is_an_error(self):
        code, out, err = self.run_script("-N 1", "COUNT=8\nsrun -n $COUNT echo started")
        self.assertEqual(code, 1, out + err)
        self.assertNotIn("| started", out)
        self.assertIn("its number of tasks is '$COUNT'", err)
        self.assertIn("a step of '8' tasks in a job of 1", out)

    def test_a_step_that_no_reading_finds_is_an_error_and_not_one_run(self):
        inner = self.home.write("run.sh", "srun echo started\n")
        code, out, err = self.run_script("-n 4", f"bash {inner}")
        self.assertEqual(code, 1, out + err)
        self.assertNotIn("| started", out)
        self.assertIn("a step of 4 tasks in a job that was imported as one task", out)

    def test_srun_in_a_variable_starts_every_task(self):
        code, out, err = self.run_script("-N 1 -n 4", 'LAUNCH="srun --cpu-bind=cores"\n$LAUNCH bash -c \'echo rank $SLURM_PROCID at $SLURM_STEP_NUM_NODES\'')
        self.assertEqual(code, 0, out + err)
        self.assertEqual([out.count(f"rank {rank} at 1") for rank in range(4)], [1, 1, 1, 1], out)

    def test_hostname_is_that_of_the_first_node_as_where_the_script_runs_once(self):
        code, out, err = self.run_script("-N 2", """
SLURM_JOB_NODELIST=first,second
echo "script $(hostname) $(hostname -s) $(hostname --ip-address)"
srun hostname | sed 's/^/step /'
srun bash -c 'echo "program $(hostname)"'""")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(out.count("| script first first first"), 2, out)
        for line in ("step", "program"):
            self.assertEqual(out.count(f"| {line} {os.uname().nodename}"), 2, out)

    def test_srun_keeps_its_directory_and_variables(self):
        code, out, err = self.run_script("-n 2", """mkdir -p "$SHOAL_SCRATCH/there"
srun --export=ALL,MODE=fast,NAME='a b' -D "$SHOAL_SCRATCH/there" bash -c 'echo "$MODE/$NAME in ${PWD##*/}"'
echo "then ${MODE:-none}" """)
        self.assertEqual(code, 0, out + err)
        self.assertEqual(out.count("| fast/a b in there"), 2, out)
        self.assertEqual(out.count("| then none"), 2, out)

    def test_programs_that_start_srun_find_it(self):
        for start in ("timeout 30 srun", "env A=1 srun", "exec srun", "nice -n 1 srun"):
            code, out, err = self.run_script("-n 2", f"{start} bash -c 'echo rank $SLURM_PROCID'")
            self.assertEqual(code, 0, start + out + err)
            self.assertEqual((out.count("| rank 0"), out.count("| rank 1")), (1, 1), start + out)

    def test_torchrun_finds_the_other_tasks(self):
        folder = self.program("torchrun")
        code, out, err = self.run_script("--nodes=2", f"""
export PATH={folder}:$PATH
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
head=$(srun --nodes=1 --ntasks=1 -w "${{nodes[0]}}" hostname --ip-address)
ARGS=(--nnodes 7 --rdzv_backend c10d --rdzv_id $RANDOM --rdzv_endpoint "$head:29500")
srun -l torchrun "${{ARGS[@]}}" train.py
srun bash -c 'torchrun --nnodes=7 --node_rank=$SLURM_NODEID --master_addr=nobody --master_port=1 train.py'""")
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, r"worker-0 +\| torchrun --nnodes 2 --rdzv_backend c10d --rdzv_id (\d+) --rdzv_endpoint (\S+) train.py at \2\n")
        for rank in (0, 1):
            self.assertRegex(out, rf"worker-{rank} +\| torchrun --nnodes=2 --node_rank={rank} --master_addr=(\S+) --master_port=(\S+) train.py at \1:\2\n")

    def test_mpis_programs_are_started_by_mpirun_once(self):
        folder = self.program("mpirun")
        code, out, err = self.run_script("--nodes=2 --ntasks-per-node=2", f"export PATH={folder}:$PATH\nsrun --mpi=pmix ./solver 7; env | grep -c ^SLURM_JOBID || true")
        self.assertEqual(code, 0, out + err)
        self.assertIn("launcher-0 | mpirun -np 4 ./solver 7", out)
        self.assertIn("launcher-0 | 0", out)

    def test_an_array_is_a_task_for_each_number(self):
        code, out, err = self.run_script("--array=2,3,7", 'echo "$SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"')
        self.assertEqual(code, 0, out + err)
        for index, number in enumerate((2, 3, 7)):
            self.assertIn(f"batch-{index} | {number} of 3", out)

    def test_what_it_cannot_be_is_refused(self):
        code, out, err = self.run_script("hetjob", "srun a")
        self.assertEqual(code, 2, out + err)
        self.assertIn("train.sh:2:1: #SBATCH: got a heterogeneous job", err)


class MetronomeTest(unittest.TestCase):
    def test_a_run_is_one_task_that_is_not_started_again(self):
        with harness.Home() as home:
            job = {"id": "ml.nightly", "run": {"cpus": 0.5, "mem": 64, "disk": 0, "cmd": "echo $MODE; exit 3", "env": {"MODE": "full"}},
                   "schedules": [{"id": "default", "cron": "0 3 * * *"}]}
            code, out, err = home.run("run", home.write("job.json", json.dumps(job)), seconds=60)
            self.assertEqual(code, 1, out + err)
            self.assertEqual(out.count("| full"), 1, out)
            code, out, err = home.run("import", home.write("job.json", json.dumps(job)))
            self.assertIn('cron: "0 3 * * *"', out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
