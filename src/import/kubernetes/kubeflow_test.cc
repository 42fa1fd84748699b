// Jobs of Kubeflow's operators.
#include <gtest/gtest.h>

#include "import/kubernetes/launcher_command.h"
#include "import/test_imports.h"

namespace shoal::importer {
namespace {

using job::RestartWhen;
using job::SuccessRule;

std::string Replica(const std::string& type, int replicas, const std::string& policy) {
  return "    " + type + ": {replicas: " + std::to_string(replicas) + ", restartPolicy: " + policy +
         ", template: {spec: {containers: [{name: tensorflow, command: [a]}]}}}\n";
}

constexpr const char* kTfJob =
    "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x}\nspec:\n";

TEST(TfJob, SuccessIsTheChiefsElseWorkerZeroElseAllWorkers) {
  const std::string roles = "  tfReplicaSpecs:\n" + Replica("PS", 1, "Never");
  const std::string worker = Replica("Worker", 2, "Never");
  const auto chief = Import(kTfJob + roles + worker + Replica("Chief", 1, "Never"));
  EXPECT_EQ(chief.success, (job::Success{SuccessRule::kAll, {"chief"}, 0}));
  const auto first = Import(kTfJob + roles + worker);
  EXPECT_EQ(first.success, (job::Success{SuccessRule::kFirst, {"worker"}, 0}));
  const auto all = Import(kTfJob + std::string("  successPolicy: AllWorkers\n") + roles + worker);
  EXPECT_EQ(all.success, (job::Success{SuccessRule::kAll, {"worker"}, 0}));
}

TEST(TfJob, RestartPoliciesKeepTheirMeaning) {
  const std::string head =
      std::string(kTfJob) + "  runPolicy: {backoffLimit: 4}\n  tfReplicaSpecs:\n";
  const auto restart = [&](const std::string& policy) {
    return Import(head + Replica("Worker", 1, policy)).roles[0].restart;
  };
  EXPECT_EQ(restart("Never").when, RestartWhen::kNever);
  EXPECT_EQ(restart("ExitCode").when, RestartWhen::kTransient);
  EXPECT_EQ(restart("OnFailure").when, RestartWhen::kAlways);
  EXPECT_EQ(Import(head + Replica("Worker", 1, "OnFailure")).limits.restarts, 4);
}

TEST(TfJob, DynamicWorkersMayFailAndRecordsHaveTheirTime) {
  const std::string replicas = "  tfReplicaSpecs:\n" + Replica("Worker", 3, "Never");
  const auto fixed = Import(kTfJob + replicas);
  EXPECT_FALSE(fixed.roles[0].elastic());
  EXPECT_EQ(fixed.limits.keep_records.count(), 0);
  const auto dynamic = Import(
      kTfJob +
      std::string("  enableDynamicWorker: true\n  runPolicy: {ttlSecondsAfterFinished: 60}\n") +
      replicas);
  EXPECT_EQ(dynamic.roles[0].min_replicas, 1);
  EXPECT_EQ(dynamic.limits.keep_records, std::chrono::seconds(60));
  // At once, as there: 0 would be for ever here.
  const auto gone =
      Import(kTfJob + std::string("  runPolicy: {ttlSecondsAfterFinished: 0}\n") + replicas);
  EXPECT_EQ(gone.limits.keep_records, std::chrono::seconds(1));
}

TEST(TfJob, TasksThatRunOnAfterTheEndAreReported) {
  const std::string roles =
      "  tfReplicaSpecs:\n" + Replica("Chief", 1, "Never") + Replica("Worker", 2, "Never");
  const std::string head = kTfJob;
  EXPECT_NE(Told(head + roles).find("(worker)"), std::string::npos);
  EXPECT_NE(Told(head + "  runPolicy: {cleanPodPolicy: None}\n" + roles).find("(worker)"),
            std::string::npos);
  EXPECT_EQ(Told(head + "  runPolicy: {cleanPodPolicy: Running}\n" + roles), "");
  EXPECT_EQ(Told(head + "  successPolicy: AllWorkers\n  tfReplicaSpecs:\n" +
                 Replica("Worker", 2, "Never")),
            "");
}

std::string MpiJob(const std::string& version, const std::string& spec,
                   const std::string& launcher) {
  return "apiVersion: kubeflow.org/" + version + "\nkind: MPIJob\nmetadata: {name: x}\nspec: {" +
         spec + "mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [" + launcher +
         "]}}}, Worker: {replicas: 2, template: {spec: {containers: [{name: w}]}}}}}\n";
}

TEST(MpiJob, TheOperatorsFilesAreLeftOutOrTold) {
  using Words = std::vector<std::string>;
  const auto command = [](const std::string& words) {
    return Import(MpiJob("v1", "", "{command: [" + words + "]}")).FindRole("launcher")->command;
  };
  EXPECT_EQ(command("mpirun, --hostfile, /etc/mpi/hostfile, -np, '2', a"),
            (Words{"mpirun", "-np", "2", "a"}));
  EXPECT_EQ(command("sh, -c, 'mpirun -hostfile /etc/mpi/hostfile -np 2 a'"),
            (Words{"sh", "-c", "mpirun  -np 2 a"}));
  const auto told = [](const std::string& words) {
    return Told(MpiJob("v1", "runPolicy: {cleanPodPolicy: All}, ", "{command: [" + words + "]}"));
  };
  EXPECT_EQ(told("mpirun, --hostfile, /etc/mpi/hostfile, a"), "");
  const auto args =
      Import(MpiJob("v1", "", "{image: i, args: [mpirun, -hostfile, /etc/mpi/hostfile, a]}"));
  EXPECT_EQ(args.FindRole("launcher")->args, (Words{"mpirun", "a"}));
  EXPECT_NE(told("sh, -c, 'cat /etc/mpi/discover_hosts.sh; mpirun a'").find("/etc/mpi"),
            std::string::npos);
  EXPECT_NE(told("horovodrun, -np, '2', --host-discovery-script, /etc/mpi/discover_hosts.sh, a")
                .find("horovodrun reaches"),
            std::string::npos);
}

TEST(MpiJob, TheHostFileIsOneThatShoalWrites) {
  const auto launcher = [](const std::string& spec, const std::string& container) {
    return *Import(MpiJob("v2beta1", spec, container)).FindRole("launcher");
  };
  const auto script = launcher("", R"({command: [bash, -c, "N=$(sed -n '$=' /etc/mpi/hostfile)
    for h in $(awk '{print $1}' \"/etc/mpi/hostfile\"); do echo '/etc/mpi/hostfile' $h; done
    mpirun --hostfile /etc/mpi/hostfile -np $N a"]})");
  EXPECT_EQ(script.command.at(2),
            "N=$(sed -n '$=' \"$SHOAL_MPI_HOSTFILE\") for h in $(awk '{print $1}' "
            "\"$SHOAL_MPI_HOSTFILE\"); do echo ''\"$SHOAL_MPI_HOSTFILE\"'' $h; done mpirun  -np "
            "$N a");
  const auto words = launcher("mpiImplementation: Intel, ",
                              "{command: [python, run.py, /etc/mpi/hostfile], env: [{name: HOSTS, "
                              "value: /etc/mpi/hostfile}, {name: I_MPI_HYDRA_HOST_FILE, value: "
                              "/etc/mpi/hostfile}]}");
  EXPECT_EQ(words.command.at(2),
            "export HOSTS=\"$SHOAL_MPI_HYDRA_HOSTFILE\"\nexec 'python' 'run.py' "
            "''\"$SHOAL_MPI_HYDRA_HOSTFILE\"''");
  EXPECT_TRUE(words.env.empty());
  const std::string other = "cat /etc/mpi/hostfile.old";
  EXPECT_EQ(launcher("", "{command: [sh, -c, '" + other + "']}").command.at(2), other);
}

TEST(MpiJob, TheLaunchersSshReachesWorkersThroughTheirTasks) {
  const auto script = [](const std::string& text) {
    return Import(MpiJob("v1", "", "{command: [sh, -c, '" + text + "']}"))
        .FindRole("launcher")
        ->command.at(2);
  };
  const std::string path = "export PATH=\"$SHOAL_MPI_BIN:$PATH\"\n";
  for (const char* text :
       {"until ssh -p 2222 h true; do :; done", "(ssh h a)&", "mpirun --mca plm_rsh_agent ssh a",
        "mpirun --mca plm_rsh_agent \"ssh -q\" a"}) {
    EXPECT_EQ(script(text), path + text);
  }
  EXPECT_EQ(Import(MpiJob("v1", "", "{command: [bash, -lc], args: ['ssh h a']}"))
                .FindRole("launcher")
                ->command,
            (std::vector<std::string>{"bash", "-lc", path + "ssh h a"}));
  for (const char* text : {"mkdir /root/.ssh", "service sshd start; ls /ssh/a", "a --ssh-key b"})
    EXPECT_EQ(script(text), text);
  EXPECT_EQ(script("mpirun --mca plm_rsh_agent /etc/mpi/kubexec.sh a"),
            "mpirun --mca plm_rsh_agent \"$SHOAL_MPI_BIN/ssh\" a");
  EXPECT_NE(Told(MpiJob("v1", "", "{command: [sh, -c, 'scp a h:b']}")).find("runs scp"),
            std::string::npos);
}

TEST(MpiJob, TheLaunchersContainerSlotsAndRestartsAreAsThere) {
  const auto job = Import(MpiJob("v2beta1",
                                 "mainContainer: run, runLauncherAsWorker: true, "
                                 "slotsPerWorker: 2, ",
                                 "{name: side, command: [b]}, {name: run, command: [mpirun, a]}"));
  EXPECT_EQ(job.FindRole("launcher")->command, (std::vector<std::string>{"mpirun", "a"}));
  EXPECT_EQ(job.FindRole("worker")->replicas, 3);
  EXPECT_EQ(job.FindRole("worker")->processes, 2);
  EXPECT_EQ(job.FindRole("launcher")->restart.when, RestartWhen::kAlways);
  EXPECT_EQ(job.FindRole("launcher")->restart.limit, 6);
  const auto never = Import(MpiJob("v1", "", "{command: [mpirun, a]}"));
  EXPECT_EQ(never.FindRole("launcher")->restart.when, RestartWhen::kNever);
}

TEST(XgboostJob, WorkersHaveTheirAddresses) {
  const auto job = Import(
      "apiVersion: kubeflow.org/v1\nkind: XGBoostJob\nmetadata: {name: x}\nspec: {xgbReplicaSpecs: "
      "{Master: {template: {spec: {containers: [{command: [a]}]}}}, Worker: {replicas: 2, "
      "template: "
      "{spec: {containers: [{command: [a]}]}}}}}\n");
  EXPECT_EQ(job.FindRole("master")->env.at("WORKER_ADDRS"), "{{shoal.hosts.worker}}");
}

TEST(MxJob, WorkersHaveTheVariablesOfByteps) {
  const auto role = [](const std::string& name) {
    return name + ": {replicas: 1, template: {spec: {containers: [{command: [bpslaunch]}]}}}";
  };
  const auto job = Import(
      "apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {name: x}\nspec: {mxReplicaSpecs: {" +
      role("Scheduler") + ", " + role("Server") + ", " + role("Worker") + "}}\n");
  EXPECT_EQ(job.FindRole("worker")->env.at("DMLC_WORKER_ID"), "{{shoal.index}}");
  EXPECT_EQ(job.FindRole("server")->env.at("DMLC_USE_KUBERNETES"), "1");
  EXPECT_FALSE(job.FindRole("server")->env.contains("DMLC_WORKER_ID"));
}

TEST(JaxJob, WorkersAreProcesses) {
  const auto job = Import(
      "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: x}\nspec: {jaxReplicaSpecs: "
      "{Worker: {replicas: 2, restartPolicy: OnFailure, template: {spec: {containers: [{name: jax, "
      "command: [python3, train.py], ports: [{name: jaxjob-port, containerPort: 6666}]}]}}}}}\n");
  EXPECT_EQ(job.framework, job::Framework::kJax);
  EXPECT_EQ(job.FindRole("worker")->replicas, 2);
  EXPECT_EQ(job.FindRole("worker")->ports, (std::vector<job::Port>{{"coordinator", false}}));
  EXPECT_EQ(job.success.roles, std::vector<std::string>{"worker"});
}

TEST(PaddleJob, AMastersEndIsTheJobs) {
  const auto text = [](const std::string& master) {
    return "apiVersion: kubeflow.org/v1\nkind: PaddleJob\nmetadata: {name: x}\nspec: "
           "{paddleReplicaSpecs: {" +
           master +
           "Worker: {replicas: 2, template: {spec: {containers: [{name: paddle, command: "
           "[a]}]}}}}}\n";
  };
  const auto job = Import(text(""));
  EXPECT_EQ(job.framework, job::Framework::kPaddle);
  EXPECT_EQ(job.success.roles, std::vector<std::string>{"worker"});
  EXPECT_EQ(job.FindRole("worker")->restart.when, job::RestartWhen::kAlways);
  const auto servers =
      Import(text("Master: {template: {spec: {containers: [{name: paddle, command: [a]}]}}}, "));
  EXPECT_EQ(servers.success.roles, std::vector<std::string>{"master"});
}

TEST(TfJob, OverridesChangeTheImportedJob) {
  const std::string text =
      std::string(kTfJob) + "  tfReplicaSpecs:\n" + Replica("Worker", 2, "Never");
  EXPECT_EQ(Import(text, {"roles.worker.replicas=7"}).roles[0].replicas, 7);
  const auto imported = ImportText(text, "f.yaml");
  ASSERT_TRUE(imported.ok());
  const auto wrong = FinishImport(**imported, {"roles.worke.replicas=7"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("did you mean 'worker'"), std::string::npos);
}

TEST(PyTorchJob, ATorchrunThatIsNotTheFirstWordFindsTheOthers) {
  for (const char* container :
       {"command: [bash, -c, 'cd /w && torchrun train.py']",
        "command: [python, -u, -m, torch.distributed.run, train.py]",
        "command: [tini, --, torchrun, train.py]", "command: [torchrun, --run-path, train.py]",
        "command: [python3, -m, torch.distributed.launch, train.py]"}) {
    const auto job = Import(PytorchJob("nprocPerNode: '4', ", container));
    EXPECT_EQ(job.roles[0].processes, 1) << container;
    EXPECT_EQ(job.roles[0].env.at("PET_NPROC_PER_NODE"), "4") << container;
    EXPECT_NE(Told(PytorchJob("", container)).find("one a core"), std::string::npos) << container;
  }
  const auto gpus = Import(PytorchJob(
      "", "command: [tini, --, torchrun, a.py], resources: {limits: {nvidia.com/gpu: 2}}"));
  EXPECT_EQ(gpus.roles[0].env.at("PET_NPROC_PER_NODE"), "auto");
  const auto plain = Import(PytorchJob("", "command: [python, train.py]"));
  EXPECT_FALSE(plain.roles[0].env.contains("PET_NPROC_PER_NODE"));
  EXPECT_NE(
      Told(PytorchJob("nprocPerNode: '4', ", "command: [python, train.py]")).find("WORLD_SIZE"),
      std::string::npos);
  EXPECT_NE(Told(PytorchJob("", "command: [accelerate, launch, a.py]")).find("--num_machines"),
            std::string::npos);
}

// As in the operator's getNprocPerNodeInt: WORLD_SIZE, which commands give to torchrun as --nnodes,
// is the number of pods unless nprocPerNode is a number.
TEST(PyTorchJob, AWordForTheProcessesDoesNotMultiplyTheWorld) {
  const std::string container =
      "command: [bash, -c, 'torchrun --nnodes=$WORLD_SIZE a.py'], "
      "resources: {limits: {nvidia.com/gpu: 8}}";
  const auto of = [&](const std::string& spec) {
    return Import(PytorchJob(spec, container)).roles[0].env.at("PET_NPROC_PER_NODE");
  };
  EXPECT_EQ(of(""), "auto");
  EXPECT_EQ(of("nprocPerNode: gpu, "), "gpu");
  EXPECT_EQ(of("nprocPerNode: '4', "), "4");
}

TEST(PyTorchJob, TorchrunIsReplacedInAllRolesOrInNone) {
  const auto one = Import(PytorchJob("nprocPerNode: '4', ", "command: [torchrun, a.py]"));
  EXPECT_EQ(one.roles[0].processes, 4);
  // Each pod trains by itself there.
  const auto alone =
      Import(PytorchJob("nprocPerNode: '4', ", "command: [torchrun, --standalone, a]"));
  EXPECT_EQ(alone.roles[0].command[0], "torchrun");
  EXPECT_EQ(alone.roles[0].processes, 1);
  const auto restarts = Import(PytorchJob("", "command: [torchrun, --max-restarts=3, a.py]"));
  EXPECT_EQ(restarts.roles[0].restart.limit, 3);
  const std::string pod = "template: {spec: {containers: [{command: [";
  const auto mixed = Import(
      "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x}\nspec: {nprocPerNode: "
      "'2', "
      "pytorchReplicaSpecs: {Master: {" +
      pod + "torchrun, a.py]}]}}}, Worker: {" + pod + "sh, -c, torchrun a.py]}]}}}}}\n");
  EXPECT_EQ(mixed.FindRole("master")->command[0], "torchrun");
  EXPECT_EQ(mixed.FindRole("master")->env.at("PET_NPROC_PER_NODE"), "2");
}

TEST(LaunchLine, TorchrunIsTakenOff) {
  const auto line = ParseTorchrunCommand(
      {"torchrun", "--nproc-per-node=4", "--rdzv_backend", "c10d", "-m", "train", "--nnodes", "2"});
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->processes, 4);
  EXPECT_EQ(line->command,
            (std::vector<std::string>{"python3", "-u", "-m", "train", "--nnodes", "2"}));
  const auto old = ParseTorchrunCommand({"/usr/bin/python3", "-m", "torch.distributed.launch",
                                         "--use_env", "--nproc_per_node", "gpu", "a.py"});
  ASSERT_TRUE(old.has_value());
  EXPECT_EQ(old->per_node, "gpu");
  EXPECT_EQ(old->command, (std::vector<std::string>{"/usr/bin/python3", "-u", "a.py"}));
  const auto beside = ParseTorchrunCommand({"/opt/venv/bin/torchrun", "-r", "3", "--nnodes=1:4",
                                            "--max-restarts", "2", "--log-dir=l", "a.py"});
  ASSERT_TRUE(beside.has_value());
  EXPECT_EQ(beside->command, (std::vector<std::string>{"/opt/venv/bin/python3", "-u", "a.py"}));
  EXPECT_EQ(beside->nodes, "1:4");
  EXPECT_EQ(beside->restarts, 2);
  EXPECT_EQ(beside->lost, "--r, --log_dir");
  EXPECT_EQ(ParseTorchrunCommand({"torchrun", "--standalone", "a.py"})->nodes, "1");
  // It passes --local-rank to the program.
  EXPECT_FALSE(
      ParseTorchrunCommand({"python3", "-m", "torch.distributed.launch", "a.py"}).has_value());
  EXPECT_FALSE(ParseTorchrunCommand({"torchrun", "--run-path", "a.py"}).has_value());
  EXPECT_FALSE(ParseTorchrunCommand({"python", "train.py"}).has_value());
  EXPECT_FALSE(ParseTorchrunCommand({"torchrun", "--new-flag", "a.py"}).has_value());
  EXPECT_FALSE(ParseTorchrunCommand({"torchrun", "--nnodes"}).has_value());
  EXPECT_FALSE(ParseTorchrunCommand({"torchrun", "---"}).has_value());
}

TEST(Kubeflow, XgboostJobsOfTheirFirstOperatorAreTheSame) {
  const std::string text =
      "apiVersion: xgboostjob.kubeflow.org/v1\nkind: XGBoostJob\nmetadata: {name: x}\nspec: "
      "{xgbReplicaSpecs: {Master: {template: {spec: {containers: [{name: xgboostjob, command: "
      "[a]}]}}}}}\n";
  const auto imported = ImportText(text, "f.yaml");
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  ASSERT_TRUE(imported->has_value());
  EXPECT_EQ((*imported)->job.roles.at(0).name, "master");
  std::string other = text;
  other.replace(other.find("xgboostjob.kubeflow"), 19, "other.kubeflow");
  EXPECT_FALSE(ImportText(other, "f.yaml").ok());
}

}  // namespace
}  // namespace shoal::importer
