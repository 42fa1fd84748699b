"""Jobs of framework mpi: the machine's own mpirun, its line unchanged, starts ranks in the workers' tasks.
SHOAL_BIN names the binary. Open MPI and MPICH, each where it is installed."""
import os
import re
import shutil
import signal
import unittest

import harness

MPIS = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}
JOB = """\
framework: mpi
command: [sh, -c, 'exec mpirun.%s %s sh -c "$LINE"']
env: {LINE: '%s', HELD: yes}
roles:
  launcher: {env: {ROLES_OWN: launcher}}
  worker: {replicas: 2, processes: 2, env: {ROLES_OWN: worker}}
limits: {restarts: 0}
"""

# The idiom of Oracle's and AWS' NCCL tests: the launcher waits for its workers with ssh, by the operator's host file.
OPERATORS = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: nccl-tests}
spec:
  slotsPerWorker: 2
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
            - image: i
              command: [/bin/bash, -c]
              args:
                - |
                  set -e
                  until (for host in $(awk '{print $1}' /etc/mpi/hostfile); do
                    ssh -o ConnectTimeout=5 -p 2222 $host exit 2> /dev/null || exit 1
                  done); do sleep 1; done
                  while read -r host slots; do ssh $host "echo \\$SHOAL_ROLE-\\$SHOAL_INDEX of $host $slots"; done < /etc/mpi/hostfile
                  ssh -n worker-1 'exit 7' || echo ends with $?
                  ssh elsewhere true || echo no $?
                  SCRIPT
    Worker:
      replicas: 2
      template: {spec: {containers: [{image: i, command: [/usr/sbin/sshd, -De]}]}}
"""


class MpiTest(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)

    def each(self):
        """The MPIs that are here: name, variable of the rank."""
        there = {mpi: rank for mpi, rank in MPIS.items() if shutil.which(f"mpirun.{mpi}")}
        if not there:
            self.skipTest("there is no mpirun")
        return there.items()

    def job(self, mpi, line, options=""):
        return self.home.write(f"{mpi}.yaml", JOB % (mpi, options, line))

    def run_job(self, *job):
        code, out, err = self.home.run("run", self.job(*job))
        self.assertEqual(self.home.leftovers(), [])
        return code, out, err

    def test_ranks_have_their_workers_environment(self):
        for mpi, rank in self.each():
            with self.subTest(mpi):
                code, out, err = self.run_job(mpi, f"echo rank ${rank} $SHOAL_ROLE-$SHOAL_INDEX $ROLES_OWN $HELD "
                                                   "local=$SHOAL_LOCAL_RANK")
                self.assertEqual(code, 0, out + err)
                self.assertEqual(sorted(re.findall(r"\| (rank .*)", out)),
                                 [f"rank {r} worker-{r // 2} worker yes local=" for r in range(4)], out)

    def test_ranks_in_two_tasks_of_a_host_send_each_other_messages(self):
        for mpi, _ in self.each():
            if not shutil.which(f"mpicc.{mpi}"):
                continue
            with self.subTest(mpi):
                ring = os.path.join(os.environ["SHOAL_SOURCE"], "examples", "mpi", "ring.yaml")
                code, out, err = self.home.run("run", ring, "--set", f"env.MPI={mpi}", "--set", "env.STEPS=3")
                self.assertEqual(code, 0, out + err)
                self.assertIn("3 steps, sum ", out)

    def test_slots_are_the_workers_processes(self):
        for mpi, _ in self.each():
            with self.subTest(mpi):
                code, out, err = self.run_job(mpi, "echo here $SHOAL_INDEX", "-np 3")
                self.assertEqual(code, 0, out + err)
                self.assertEqual(sorted(re.findall(r"\| here (\d)", out)), ["0", "0", "1"], out)

    def test_a_wrong_exit_is_the_jobs(self):
        code, out, err = self.run_job("openmpi" if shutil.which("mpirun.openmpi") else self.skipTest("no Open MPI"),
                                      "exit 3")
        self.assertEqual(code, 1, out + err)
        self.assertIn("launcher 0 exited with 3", out + err)

    def test_a_killed_rank_ends_the_job_with_its_name(self):
        for mpi, _ in self.each():
            with self.subTest(mpi):
                process = self.home.start("run", self.job(mpi, "echo up; exec sleep 600"))
                self.addCleanup(process.kill)
                self.assertTrue(harness.poll_until(lambda: harness.said(process).count("| up") == 4, 30 * harness.PATIENCE),
                                harness.said(process))
                rank = [p for p in self.home.processes() if p.argv == ["sleep", "600"] and p.environ["SHOAL_INDEX"] == "1"][0]
                os.kill(rank.pid, signal.SIGKILL)
                self.assertTrue(harness.poll_until(lambda: process.poll() is not None, 30 * harness.PATIENCE))
                self.assertEqual(process.poll(), 1, harness.said(process))
                self.assertIn("worker-1", re.split(r"\| up\n", harness.said(process))[-1])
                self.assertEqual(self.home.leftovers(), [])

    def run_operators(self, script):
        # A program of the machine's own, which reaches the other hosts.
        os.mkdir(self.home.path("bin"))
        self.home.write("bin/ssh", "#!/bin/sh\necho the other ssh: $*\nexit 3\n")
        os.chmod(self.home.path("bin/ssh"), 0o755)
        path = self.home.path("bin") + ":" + os.environ["PATH"]
        code, out, err = self.home.run("run", self.home.write("mpijob.yaml", OPERATORS.replace("SCRIPT", script)),
                                       "--set", f"roles.launcher.env.PATH={path}")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.home.leftovers(), [])
        return re.findall(r"launcher-0 \| (.*)", out)

    def test_ssh_of_a_launcher_reaches_the_workers_of_its_host_file(self):
        lines = self.run_operators("true")
        self.assertEqual([line for line in lines if "standard input" not in line],
                         ["worker-0 of worker-0 slots=2", "worker-1 of worker-1 slots=2", "ends with 7",
                          "the other ssh: elsewhere true", "no 3"])
        self.assertEqual(len([line for line in lines if "standard input is not sent" in line]), 2)

    def test_mpirun_takes_that_ssh_as_its_agent(self):
        if not shutil.which("mpirun.openmpi"):
            self.skipTest("there is no Open MPI")
        lines = self.run_operators("mpirun.openmpi --mca plm_rsh_agent 'ssh -q -p 222' --hostfile /etc/mpi/hostfile "
                                   "sh -c 'echo rank $OMPI_COMM_WORLD_RANK of $SHOAL_INDEX'")
        self.assertEqual(sorted(line for line in lines if line.startswith("rank")), [f"rank {r} of {r // 2}" for r in range(4)])

    def test_other_hosts_are_refused_by_name(self):
        if not shutil.which("mpirun.mpich"):
            self.skipTest("there is no MPICH")
        code, out, err = self.run_job("mpich", "echo oh", "-hosts node7,worker-1")
        self.assertEqual(code, 1, out + err)
        self.assertIn("the host 'node7', which is not a task of this job that runs ranks, expected one of worker-0, worker-1",
                      out)


if __name__ == "__main__":
    unittest.main()
