// Batch scripts of Slurm: how options are read, what the shell of the script sees, what it becomes.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

#include "base/file.h"
#include "import/import.h"
#include "import/slurm/shell_script.h"
#include "import/slurm/slurm_options.h"
#include "import/slurm/slurm_prelude.h"

namespace shoal::importer {
namespace {

using Numbers = std::vector<int64_t>;
using Words = std::vector<std::string>;

TEST(SlurmOptions, TimesAreThoseOfSbatch) {
  const auto seconds = [](const char* text) {
    const auto time = ParseSlurmTime(text);
    return time ? time->count() : -1;
  };
  EXPECT_EQ(seconds("30"), 1800);
  EXPECT_EQ(seconds("1:30"), 90);
  EXPECT_EQ(seconds("08:09:07"), 8 * 3600 + 9 * 60 + 7);
  EXPECT_EQ(seconds("2-12"), 60 * 3600);
  EXPECT_EQ(seconds("0-0:30:00"), 1800);
  EXPECT_EQ(seconds("UNLIMITED"), 0);
  for (const char* wrong : {"", "x", "1:2:3:4", "1-", "-5", "1.5"})
    EXPECT_EQ(seconds(wrong), -1) << wrong;
}

TEST(SlurmOptions, MemoryIsInMegabytes) {
  EXPECT_EQ(ParseSlurmMemory("4000"), int64_t{4000} << 20);
  EXPECT_EQ(ParseSlurmMemory("64G"), int64_t{64} << 30);
  EXPECT_EQ(ParseSlurmMemory("50gb"), int64_t{50} << 30);
  EXPECT_EQ(ParseSlurmMemory("1.5T"), int64_t{3} << 39);
  EXPECT_EQ(ParseSlurmMemory("0"), 0);
  for (const char* wrong : {"", "G", "4X", "-1", "9999999T"})
    EXPECT_FALSE(ParseSlurmMemory(wrong).has_value()) << wrong;
}

TEST(SlurmOptions, ArraysAreLists) {
  EXPECT_EQ(ParseSlurmArray("0-3", 10), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(ParseSlurmArray("1-9:4,20%2", 10), (Numbers{1, 5, 9, 20}));
  EXPECT_EQ(ParseSlurmArray("7", 10), Numbers{7});
  EXPECT_EQ(ParseSlurmArray("[0-2]", 10), (Numbers{0, 1, 2}));
  EXPECT_EQ(ParseSlurmArray("[1-3,7]%2", 10), (Numbers{1, 2, 3, 7}));
  for (const char* wrong : {"", "3-1", "1-", "a", "0-10", "1-5:0", "0-9223372036854775807",
                            "9223372036854775806-9223372036854775807", "5-6:9223372036854775807"})
    EXPECT_FALSE(ParseSlurmArray(wrong, 10).has_value()) << wrong;
}

TEST(ShellScript, HereStringsAndShiftsAreNoHereDocuments) {
  const ShellScript text = ParseShellScript(
      "V=$(sed s/a/b/ <<<\"${!NCCL*} A\")\nIFS=, read -r a b <<< \"$V\"\n"
      "N=$((1 << 3)) M=$((2<<N))\ncat <<END\nsrun no\nEND\nsrun ./a\n");
  std::vector<std::string> programs;
  for (const ShellCommand& command : text.commands) programs.push_back(command.words[0]);
  EXPECT_EQ(programs, (Words{"sed", "read", "cat", "srun"}));
  EXPECT_EQ(text.commands.back().line, 7);
  EXPECT_TRUE(text.assigned.contains("b"));
}

TEST(ShellScript, CommandsAndVariablesAreSeen) {
  const ShellScript text = ParseShellScript(
      "# srun not\n"
      "export A=1 B\n"
      "for i in $LIST; do X=\"$i\" srun -n 2 \\\n  ./a \"$C\" '$D' & done; wait\n"
      "name=$(srun hostname | head -n 1)\n"
      "[ -z \"${E:-}\" ] && exec srun ./b $((F + $G)) $1\n"
      "cat <<END\nsrun ./c $H\nEND\n"
      "if true; then mpirun ./d; fi\n");
  std::vector<std::string> programs;
  Words step;
  for (const ShellCommand& command : text.commands) {
    programs.push_back(command.words[0] + (command.captured ? "()" : ""));
    if (command.words.size() > 2 && command.words[0] == "srun" && !command.captured && step.empty())
      step = command.words;
  }
  EXPECT_EQ(programs, (Words{"export", "for", "srun", "done", "wait", "srun()", "head()", "[",
                             "srun", "cat", "true", "mpirun", "fi"}));
  EXPECT_EQ(step, (Words{"srun", "-n", "2", "./a", "$C", "$D"}));
  EXPECT_EQ(text.used, (std::set<std::string>{"LIST", "i", "C", "G"}));
  EXPECT_EQ(text.assigned, (std::set<std::string>{"A", "B", "i", "X", "name"}));
  EXPECT_TRUE(text.arguments);
  EXPECT_FALSE(ParseShellScript("a '$1' # $2").arguments);
  // A function's arguments are not the script's.
  for (const char* function :
       {"f() {\n a $1; }", "f ()\n{ a \"$@\"\n}", "function f { { a $1; }; b $2; }"})
    EXPECT_FALSE(ParseShellScript(function).arguments) << function;
  for (const char* script : {"f() { a; }\nb $1", "a=(); { b $1; }", "{ a; }; b $2"})
    EXPECT_TRUE(ParseShellScript(script).arguments) << script;
  EXPECT_EQ(ParseShellScript(": \"${A:=1}\" $A").assigned, std::set<std::string>{"A"});
}

job::Job Import(const std::string& script) {
  auto imported = ImportText(script, "train.sh");
  if (!imported.ok() || !imported->has_value()) {
    ADD_FAILURE() << imported.status().message();
    return {};
  }
  auto finished = FinishImport(**imported, {});
  if (!finished.ok()) {
    ADD_FAILURE() << finished.status().message();
    return {};
  }
  return finished->job;
}

std::string Wrong(const std::string& script) {
  const auto imported = ImportText(script, "train.sh");
  return imported.ok() ? "" : imported.status().message();
}

job::Job Lines(const std::string& options, const std::string& script) {
  return Import("#!/bin/bash\n#SBATCH " + options + "\n" + script + "\n");
}

TEST(SlurmScript, TasksBecomeNodesWithProcesses) {
  const job::Job job =
      Lines("-N 2 --ntasks-per-node=4 -c 8 --mem=64G --gpus-per-node=a100:4", "srun ./a");
  ASSERT_EQ(job.roles.size(), 1u);
  EXPECT_EQ(job.name, "train");
  EXPECT_EQ(job.roles[0].replicas, 2);
  EXPECT_EQ(job.roles[0].processes, 4);
  EXPECT_EQ(job.roles[0].resources.cpu, 32);
  EXPECT_EQ(job.roles[0].resources.gpu, 4);
  EXPECT_EQ(job.roles[0].resources.memory_bytes, int64_t{64} << 30);
  EXPECT_EQ(job.slurm.gpu_type, "a100");
  EXPECT_EQ(job.roles[0].restart.when, job::RestartWhen::kNever);
  const job::Job apart = Lines("-n 6 -c 2 --mem-per-cpu=1G", "srun ./a");
  EXPECT_EQ(apart.roles[0].replicas, 6);
  EXPECT_EQ(apart.roles[0].processes, 1);
  EXPECT_EQ(apart.roles[0].resources.cpu, 2);
  EXPECT_EQ(apart.roles[0].resources.memory_bytes, int64_t{2} << 30);
}

TEST(SlurmScript, AStepMayHaveMoreTasksThanTheOptions) {
  const job::Job one = Lines("--nodes=1 --cpus-per-task=32 --gpus-per-node=8", "srun -n 8 ./a");
  EXPECT_EQ(one.roles[0].replicas, 1);
  EXPECT_EQ(one.roles[0].processes, 8);
  EXPECT_EQ(one.roles[0].resources.cpu, 32);
  EXPECT_EQ(one.roles[0].resources.gpu, 8);
  const job::Job two = Lines("-N 2", "srun --ntasks-per-node=4 ./a");
  EXPECT_EQ(two.roles[0].replicas, 2);
  EXPECT_EQ(two.roles[0].processes, 4);
  EXPECT_EQ(Lines("-n 4", "timeout 60 srun -n4 ./a").roles[0].replicas, 4);
  EXPECT_EQ(Lines("-n 4", "srun --ntasks=2 ./a").roles[0].replicas, 4);
  EXPECT_NE(Wrong("#!/bin/bash\n#SBATCH --array=0-3\nsrun -n 2 ./a\n").find("for each number"),
            std::string::npos);
}

TEST(SlurmScript, OptionsOfStepsThatAreNotKeptAreTold) {
  const auto told = [](const std::string& step) {
    const auto imported = ImportText("#!/bin/bash\n#SBATCH -n 4\n" + step + "\n", "f.sh");
    std::string text;
    for (const ImportLoss& loss : (*imported)->losses) text += loss.sentence + "\n";
    return text;
  };
  EXPECT_NE(told("srun -o out.%t ./a").find("--output said where it writes"), std::string::npos);
  EXPECT_NE(told("srun --input=x ./a").find("--input said where it reads"), std::string::npos);
  EXPECT_NE(told("srun -n ${COUNT} ./a").find("is '${COUNT}'"), std::string::npos);
  for (const char* own : {"${SLURM_NTASKS}", "${SLURM_NTASKS:-1}"})
    EXPECT_EQ(told(std::string("srun -n ") + own + " ./a").find("number of tasks"),
              std::string::npos);
  EXPECT_NE(told("declare -a ARGS=(\n  --container-image $IMAGE\n)\nsrun -l \"${ARGS[@]}\" ./a")
                .find("ran in a container"),
            std::string::npos);
  EXPECT_EQ(told("# --container-image\nsrun $ARGS ./a").find("container"), std::string::npos);
  EXPECT_NE(told("/usr/bin/srun ./a").find("Slurm's own"), std::string::npos);
}

TEST(SlurmScript, AScriptWithoutStepsRunsOnce) {
  const job::Job job =
      Lines("--ntasks-per-node=8 --nodes=1 --gpus=2 --mem-per-gpu=8G", "python3 a.py");
  EXPECT_EQ(job.roles[0].name, "batch");
  EXPECT_EQ(job.roles[0].replicas, 1);
  EXPECT_EQ(job.roles[0].resources.cpu, 8);
  EXPECT_EQ(job.roles[0].resources.gpu, 2);
  EXPECT_EQ(job.roles[0].resources.memory_bytes, int64_t{16} << 30);
  // Steps of one task each share what the job has.
  EXPECT_EQ(Lines("-n 4", "for i in 1 2; do srun -n 1 ./a $i & done; wait").roles[0].resources.cpu,
            4);
}

TEST(SlurmScript, ProgramsOfMpiAndPytorchAreSeen) {
  for (const char* script :
       {"mpirun ./a", "srun --mpi=pmix ./a", "module load openmpi\nsrun ./a"}) {
    const job::Job job = Lines("-N 2 -n 4", script);
    EXPECT_EQ(job.framework, job::Framework::kMpi) << script;
    EXPECT_EQ(job.FindRole("worker")->replicas, 2);
    EXPECT_EQ(job.FindRole("worker")->processes, 2);
    EXPECT_EQ(job.success.roles, Words{"launcher"});
  }
  EXPECT_EQ(Lines("-N 2", "srun torchrun a.py").framework, job::Framework::kPytorch);
  EXPECT_EQ(Lines("-N 1", "torchrun a.py").framework, job::Framework::kGeneric);
}

TEST(SlurmScript, UnsupportedScriptsAreRefused) {
  const auto refused = [](const std::string& options, const std::string& script) {
    return Wrong("#!/bin/bash\n#SBATCH " + options + "\n" + script + "\n");
  };
  EXPECT_NE(refused("hetjob", "srun a").find("heterogeneous"), std::string::npos);
  EXPECT_NE(refused("-n 4", "srun --het-group=0 a").find("het-group"), std::string::npos);
  EXPECT_NE(refused("-n 4 --array=0-3", "srun a").find("for each number"), std::string::npos);
  EXPECT_NE(refused("--ntask-per-nod=4", "srun a").find("did you mean 'ntasks-per-node'"),
            std::string::npos);
  EXPECT_NE(refused("--nodes=many", "srun a").find("a number of nodes"), std::string::npos);
  EXPECT_NE(Wrong("#!/usr/bin/python3\n#SBATCH -n 1\nprint(1)\n").find("bash or sh"),
            std::string::npos);
  EXPECT_NE(Wrong("#!/bin/bash\r\n#SBATCH -n 1\r\nls\r\n").find("dos2unix"), std::string::npos);
}

TEST(SlurmScript, NumbersWithoutBoundAreRefusedOrBounded) {
  const auto text = [](const std::string& options) {
    return "#!/bin/bash\n#SBATCH " + options + "\nsrun ./a\n";
  };
  EXPECT_NE(Wrong(text("-N 100000 --ntasks-per-node=100000")).find("100,000 tasks"),
            std::string::npos);
  const auto large = ImportText(text("-n 100000 -c 100000 --mem-per-cpu=15T"), "f.sh");
  ASSERT_TRUE(large.ok());
  EXPECT_EQ((*large)->job.roles[0].resources.memory_bytes, job::kMaxMemoryBytes);
}

std::string Told(const std::string& options, const std::string& script) {
  const auto imported = ImportText("#!/bin/bash\n#SBATCH " + options + "\n" + script, "f.sh");
  std::string text;
  for (const ImportLoss& loss : (*imported)->losses) text += loss.sentence + "\n";
  return text;
}

TEST(SlurmScript, StepsThatVariablesAndShellsStartAreSeen) {
  for (const char* script :
       {"LAUNCH=\"srun --cpu-bind=cores\"\n$LAUNCH ./a", "A=srun\nB=\"${A} -l\"\n\"$B\" ./a",
        "${LAUNCH:-srun} ./a", "$PREFIX srun ./a",
        "PREFIX=\n[ -n \"$1\" ] && PREFIX=echo\n$PREFIX srun ./a",
        "RUN=(srun -l)\n\"${RUN[@]}\" ./a", "CMD=\"srun ./a\"\neval $CMD", "eval \"srun ./a\"",
        "bash -c \"cd x && srun ./a\"", "export L=srun\nL+=' -l'\n$L ./a"}) {
    const job::Job job = Lines("-N 2 --ntasks-per-node=2", script);
    EXPECT_EQ(job.roles[0].name, "task") << script;
    EXPECT_EQ(job.roles[0].processes, 2) << script;
  }
  EXPECT_EQ(Lines("-n 4", "MPI=\"mpirun -np 4\"\n$MPI ./a").framework, job::Framework::kMpi);
  EXPECT_EQ(Lines("-n 4", "map --profile mpirun -np 4 ./a").framework, job::Framework::kMpi);
  // Variables in a circle, and those of other programs.
  EXPECT_EQ(Lines("-n 4", "A=$B\nB=$A\n$A ./a; C=python\n$C a.py").roles[0].name, "batch");
}

TEST(SlurmScript, TasksOfANodeAreOnOneNode) {
  const job::Job job = Lines("--ntasks-per-node=4 --gpus-per-node=8", "srun ./a");
  EXPECT_EQ(job.roles[0].replicas, 1);
  EXPECT_EQ(job.roles[0].processes, 4);
  EXPECT_EQ(job.roles[0].resources.gpu, 8);
  EXPECT_EQ(job.slurm.nodes, 1);
  EXPECT_EQ(Lines("-N 2", "srun --tasks-per-node=3 ./a").roles[0].processes, 3);
}

TEST(SlurmScript, VariablesOfTheAllocationAreSet) {
  const auto env =
      Lines("-N 2 --ntasks-per-node=4 -c 3 --mem=8G --gpus-per-task=1 --gpus=8 --qos=long",
            "srun ./a")
          .roles[0]
          .env;
  const std::map<std::string, std::string> expected = {{"SLURM_CPUS_PER_TASK", "3"},
                                                       {"SLURM_NTASKS_PER_NODE", "4"},
                                                       {"SLURM_TASKS_PER_NODE", "4(x2)"},
                                                       {"SLURM_CPUS_ON_NODE", "12"},
                                                       {"SLURM_JOB_CPUS_PER_NODE", "12(x2)"},
                                                       {"SLURM_MEM_PER_NODE", "8192"},
                                                       {"SLURM_GPUS", "8"},
                                                       {"SLURM_GPUS_PER_TASK", "1"},
                                                       {"SLURM_JOB_QOS", "long"}};
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(env.contains(name)) << name;
    EXPECT_EQ(env.at(name), value) << name;
  }
  EXPECT_FALSE(env.contains("SLURM_MEM_PER_CPU"));
  EXPECT_EQ(Lines("-n 1 --mem-per-cpu=2G", "./a").roles[0].env.at("SLURM_MEM_PER_CPU"), "2048");
}

TEST(SlurmScript, VariablesThatSlurmSetsAndNothingStandsForAreTold) {
  EXPECT_NE(Told("-n 1", "echo $SLURM_TOPOLOGY_ADDR").find("uses SLURM_TOPOLOGY_ADDR, which Slurm"),
            std::string::npos);
  EXPECT_NE(Told("-n 1", "echo $SLURM_ARRAY_TASK_ID").find("SLURM_ARRAY_TASK_ID, which Slurm"),
            std::string::npos);
  EXPECT_EQ(Told("--array=0-3", "echo $SLURM_ARRAY_TASK_ID").find("which Slurm sets"),
            std::string::npos);
  EXPECT_EQ(Told("-n 1", "echo $SLURM_JOB_ID ${SLURM_X:-}").find("which Slurm sets"),
            std::string::npos);
}

TEST(SlurmScript, ATimeIsADeadline) {
  const job::Job job = Lines("--time=2:00:00 --signal=B:USR2@90 --requeue", "./a");
  EXPECT_EQ(job.limits.deadline, std::chrono::hours(2));
  EXPECT_EQ(job.slurm.time, std::chrono::hours(2));
  EXPECT_EQ(job.slurm.save_before, std::chrono::seconds(90));
  EXPECT_NE(job.roles[0].checkpoint_signal, 0);
  EXPECT_EQ(job.roles[0].restart.scope, job::RestartScope::kJob);
}

TEST(SlurmShell, AnArrayCountsItsTasks) {
  EXPECT_NE(SlurmPrelude({.array = {1, 3, 5}}).find("TASK_ID=$((1 + SHOAL_INDEX * 2))"),
            std::string::npos);
  EXPECT_NE(SlurmPrelude({.array = {1, 3, 4}}).find("slurm_array=(1 3 4)"), std::string::npos);
}

// Runs a script's command as the task `index` of its role would be, in a process group of its own,
// and returns what it prints.
std::string Output(const job::Job& job, int index, int local_rank, const std::string& before = "") {
  const job::Role& role = job.roles[0];
  const auto scratch = TempDir::Create();
  EXPECT_TRUE(scratch.ok());
  const std::string directory = scratch->path().string();
  std::string text = "export SHOAL_JOB_ID=j SHOAL_SCRATCH='" + directory + "'";
  text += " SHOAL_INDEX=" + std::to_string(index);
  text += " SHOAL_LOCAL_RANK=" + std::to_string(local_rank);
  text += " SHOAL_REPLICAS=" + std::to_string(role.replicas);
  text += " SHOAL_LOCAL_SIZE=" + std::to_string(role.processes) + "\n";
  for (const auto& [name, value] : role.env)
    if (value.find("{{") == std::string::npos) text += "export " + name + "='" + value + "'\n";
  const std::string file = directory + "/script";
  EXPECT_TRUE(WriteFileAtomically(file, text + before + role.command.back()).ok());
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(("setsid bash " + file).c_str(), "r"),
                                             ::pclose);
  std::string output;
  for (int c = 0; (c = std::fgetc(pipe.get())) != EOF;) output += static_cast<char>(c);
  return output;
}

TEST(SlurmShell, EachTaskOfAnArrayIsAJobOfItsOwn) {
  const job::Job job =
      Lines("--array=1-9:4", "echo $SLURM_JOB_ID $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_STEP");
  const std::string first = Output(job, 0, 0);
  const std::string second = Output(job, 1, 0);
  EXPECT_NE(first, second);
  const std::string id = first.substr(0, first.find(' '));
  EXPECT_EQ(first, id + " " + id + " 4\n");
  EXPECT_EQ(second, std::to_string(std::stoll(id) + 1) + " " + id + " 4\n");
}

TEST(SlurmShell, AScriptThatIsStartedAgainKnowsIt) {
  const job::Job job = Lines("-n 1", "echo again ${SLURM_RESTART_COUNT-no}");
  EXPECT_EQ(Output(job, 0, 0, "export SHOAL_ATTEMPT=0\n"), "again no\n");
  EXPECT_EQ(Output(job, 0, 0, "export SHOAL_ATTEMPT=2\n"), "again 2\n");
  EXPECT_EQ(Told("-n 1", "echo $SLURM_RESTART_COUNT"), Told("-n 1", "echo"));
}

TEST(SlurmScript, VariantsOfMpirunStartRanks) {
  for (const char* program : {"mpirun.openmpi", "mpiexec.mpich", "mpiexec.hydra", "/opt/mpirun"}) {
    const job::Job job = Lines("-N 2 --ntasks-per-node=4", std::string(program) + " ./a");
    EXPECT_EQ(job.framework, job::Framework::kMpi) << program;
  }
  EXPECT_EQ(Lines("-n 1", "mpirunner ./a").framework, job::Framework::kGeneric);
}

TEST(SlurmScript, VariablesMayComeFromModules) {
  EXPECT_NE(Told("-n 1", "module load orca\n$ORCA_DIR/orca a").find("or has from a module"),
            std::string::npos);
  EXPECT_EQ(Told("-n 1", "$ORCA_DIR/orca a").find("module"), std::string::npos);
  EXPECT_EQ(Told("-n 1 --export=none", "$ORCA_DIR/orca a").find("shell that submitted"),
            std::string::npos);
}

TEST(SlurmShell, ATaskSeesItsOwnGpus) {
  const std::string gpus = "export CUDA_VISIBLE_DEVICES=a,b,c,d\n";
  const auto seen = [&](const std::string& options, const std::string& step, int local_rank) {
    return Output(Lines(options, step + " printenv CUDA_VISIBLE_DEVICES"), 0, local_rank, gpus);
  };
  EXPECT_EQ(seen("-N 1 --ntasks-per-node=4 --gpus-per-task=1", "srun", 2), "c\n");
  EXPECT_EQ(seen("-N 1 --ntasks-per-node=2 --gpus-per-task=a100:2", "srun", 1), "c,d\n");
  EXPECT_EQ(seen("-N 1 --ntasks-per-node=4 --gres=gpu:4", "srun --gpus-per-task=1", 3), "d\n");
  EXPECT_EQ(seen("-N 1 --gpus-per-node=4 --ntasks-per-gpu=2", "srun", 5), "c\n");
  EXPECT_EQ(seen("-N 1 --ntasks-per-node=4 --gres=gpu:4", "srun", 3), "a,b,c,d\n");
  EXPECT_EQ(seen("-N 1 --ntasks-per-node=4 --gpus-per-task=1 --gpu-bind=none", "srun", 3),
            "a,b,c,d\n");
}

TEST(SlurmScript, TasksAreAsManyAsTheirGpusAsk) {
  for (const char* options : {"--nodes=2 --gpus-per-node=4 --ntasks-per-gpu=1",
                              "--nodes=2 --gres=gpu:4 --ntasks-per-gpu=1",
                              "--gpus=8 --gpus-per-node=4 --ntasks-per-gpu=1"}) {
    const job::Job job = Lines(options, "srun ./a");
    EXPECT_EQ(job.roles[0].replicas, 2) << options;
    EXPECT_EQ(job.roles[0].processes, 4) << options;
    EXPECT_EQ(job.roles[0].resources.gpu, 4) << options;
  }
  // Eight tasks share four GPUs, on one node if no number of nodes is given.
  const job::Job shared = Lines("-n 8 --gpus-per-node=4", "srun ./a");
  EXPECT_EQ(shared.roles[0].replicas, 1);
  EXPECT_EQ(shared.roles[0].resources.gpu, 4);
  EXPECT_NE(Told("-n 8 --gpus-per-node=4", "srun ./a").find("on how many nodes is open"),
            std::string::npos);
}

// By --signal, Slurm signals the steps alone, or, with B, the script's shell alone. A task's signal
// goes to all of its processes.
TEST(SlurmShell, ASignalReachesTheStepsAlone) {
  const std::string step =
      "srun bash -c 'trap \"echo saving; sleep 0.2; echo saved; exit 3\" USR1; kill -USR1 0; "
      "while :; do sleep 0.05; done'";
  const std::string after = "\necho after $?";
  EXPECT_EQ(Output(Lines("-n 1 --signal=USR1@60", step + after), 0, 0), "saving\nsaved\nafter 3\n");
  EXPECT_EQ(Output(Lines("-n 1 --signal=USR1@60", step + " | cat" + after), 0, 0),
            "saving\nsaved\nafter 0\n");
  EXPECT_EQ(Output(Lines("-n 1 --signal=B:USR1@60",
                         "trap 'echo shell' USR1\nsrun bash -c 'kill -USR1 0; echo step'\nwait"),
                   0, 0),
            "step\nshell\n");
  EXPECT_NE(Told("-n 1 --signal=B:USR1@60", "./a &\nwait").find("start them with srun"),
            std::string::npos);
}

TEST(SlurmScript, ModulesAndProgramsOfMpiAreKnownByTheirNames) {
  const auto framework = [](const std::string& script) { return Lines("-n 8", script).framework; };
  for (const char* module : {"OpenMPI/4.1.4", "foss/2023b", "openmpi", "PrgEnv-gnu", "MVAPICH2",
                             "impi/2021", "gimkl", "mpi/hpcx"})
    EXPECT_EQ(framework(std::string("module load ") + module + "\nsrun ./a"), job::Framework::kMpi)
        << module;
  EXPECT_EQ(framework("ml GCC/11 OpenMPI/4\nsrun ./a"), job::Framework::kMpi);
  EXPECT_EQ(framework("srun ./mpi_hello"), job::Framework::kMpi);
  EXPECT_EQ(framework("srun gmx_mpi mdrun"), job::Framework::kMpi);
  // Python may read SLURM_PROCID.
  EXPECT_EQ(framework("ml foss/2023b\nsrun python a.py"), job::Framework::kGeneric);
  EXPECT_EQ(framework("module load compiler/gcc\nsrun ./compile"), job::Framework::kGeneric);
}

TEST(ShellScript, VariablesOfLoopsAndBuiltinsAreSet) {
  const ShellScript text = ParseShellScript(
      "while getopts 'm:h' opt; do echo $opt; done\n"
      "for ((i=0; i<3; i++)); do echo $i; done\n"
      "for (( j = 0; j < 3; j++ )); do echo $j; done\n"
      "mapfile -t lines < f\nread -r a b < f\nlet k=1\necho $lines $a $b $k\n");
  for (const char* name : {"opt", "i", "j", "lines", "a", "b", "k"})
    EXPECT_TRUE(text.assigned.contains(name)) << name;
}

TEST(SlurmScript, OptionsOfPluginsGoToTheirSlurm) {
  const job::Job job = Lines("--uenv=prgenv-gnu/24.11:v1 --view=default --image=acme/train:7",
                             "srun --environment e ./a");
  EXPECT_EQ(job.slurm.options,
            (Words{"--image=acme/train:7", "--uenv=prgenv-gnu/24.11:v1", "--view=default"}));
  EXPECT_NE(Told("--image=i", "./a").find("the image it runs in"), std::string::npos);
}

TEST(SlurmScript, TheNameIsTheScripts) {
  const job::Job job = Lines("--job-name='my run' -n 1", "./a");
  EXPECT_EQ(job.name, "my-run");
  EXPECT_EQ(job.roles[0].env.at("SLURM_JOB_NAME"), "my run");
}

TEST(SlurmScript, CallsThatWouldReachAnotherJobAreTold) {
  EXPECT_NE(Told("-n 1", "trap 'scontrol requeue $SLURM_JOB_ID' USR1\n./a")
                .find("to requeue its job; not done"),
            std::string::npos);
  const std::string out =
      Output(Lines("-n 1", "scontrol requeue $SLURM_JOB_ID 2> /dev/null || echo no"), 0, 0);
  EXPECT_EQ(out, "no\n");
}

}  // namespace
}  // namespace shoal::importer
