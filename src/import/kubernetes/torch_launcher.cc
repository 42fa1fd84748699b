#include "import/kubernetes/torch_launcher.h"

#include <algorithm>

#include "import/kubernetes/launcher_command.h"
#include "import/kubernetes/pod_environment.h"
#include "job/text/units.h"

namespace shoal::importer {
namespace {

using job::RestartWhen;

constexpr int kMostProcesses = 1024;  // of one task

// The number of processes of a task by `said` ("4", "gpu", "auto"; empty means "auto"). Sets
// `chosen` if neither a number nor GPUs decide it.
int PerNode(const std::string& said, const job::Role& role, bool* chosen) {
  const auto number = job::ParseInteger(said);
  if (number) return static_cast<int>(std::clamp<int64_t>(*number, 1, kMostProcesses));
  *chosen = role.resources.gpu == 0;
  return std::max(role.resources.gpu, 1);
}

// The role's torchrun command, with variables in its numbers replaced.
std::optional<TorchrunCommand> TorchrunCommandOf(const job::Role& role) {
  auto line = ParseTorchrunCommand(role.command);
  if (!line) return line;
  line->nodes = ExpandReferences(line->nodes, role.env);
  line->per_node = ExpandReferences(line->per_node, role.env);
  return line;
}

// Shoal replaces torchrun in all roles or in none: torchrun agents cannot form a group with Shoal's
// processes.
bool ReplacesTorchrun(const TorchLauncherOptions& ask, JobBuilder* builder) {
  int tasks = 0;
  bool alone = false;
  for (const auto& [name, from] : ask.templates) {
    const job::Role* role = builder->FindRole(name);
    const auto line = role == nullptr ? std::nullopt : TorchrunCommandOf(*role);
    if (!line) return false;
    alone = alone || line->nodes == "1";
    tasks += role->replicas;
  }
  return !alone || tasks <= 1;
}

// Replaces torchrun: Shoal starts the processes and sets their ranks.
void ReplaceTorchrun(const TorchrunCommand& line, const std::string& per_node, job::Role* role,
                     FieldReader* from) {
  bool chosen = false;
  role->command = line.command;
  role->processes = line.processes;
  if (role->processes == 0) {
    role->processes = PerNode(line.per_node.empty() ? per_node : line.per_node, *role, &chosen);
  }
  if (line.restarts.value_or(0) > 0 && role->restart.when == RestartWhen::kNever) {
    role->restart.when = RestartWhen::kAlways;
    role->restart.limit = *line.restarts;
  }
  from->set_at("roles." + role->name + ".command");
  from->AddLoss(
      "",
      "torchrun started the processes of a pod; Shoal starts them itself (processes: " +
          std::to_string(role->processes) + ") with the variables that torchrun would have set" +
          (chosen ? "; without a number and GPUs torchrun may start one a core: set processes"
                  : "") +
          (line.lost.empty() ? ""
                             : "; without effect: " + line.lost + ", `shoal logs` has the logs"),
      !chosen);
}

// What torchrun reads: a word of the job where it counts the GPUs itself. The training operator's
// WORLD_SIZE counts processes only where nprocPerNode is a number, else pods, and commands give it
// to torchrun as --nnodes.
std::string OfAgent(const std::string& per_node, int number, bool chosen) {
  if (chosen || job::ParseInteger(per_node)) return std::to_string(number);
  return per_node.empty() ? "auto" : per_node;
}

// Keeps the command: the launcher in it reads the variables that the training operator sets.
void KeepTorchrun(const std::string& per_node, job::Role* role, FieldReader* from) {
  bool chosen = false;
  const std::string launcher = FindLauncherName(role->command);
  if (launcher.empty() && per_node.empty()) return;
  const int number = PerNode(per_node, *role, &chosen);
  role->env.try_emplace("PET_NPROC_PER_NODE", OfAgent(per_node, number, chosen));
  from->set_at("roles." + role->name + ".command");
  if (launcher.empty() && number > 1) {
    from->AddLoss("", "nprocPerNode is " + std::to_string(number) +
                          ", and no torchrun is seen in the command; kept in "
                          "PET_NPROC_PER_NODE and WORLD_SIZE, as the training operator has it; "
                          "a program that starts no processes itself wants nprocPerNode 1");
  } else if (launcher == "accelerate launch") {
    from->AddLoss("",
                  "accelerate launch takes the number of machines from its own flags or "
                  "file, not from the job; give it --num_machines \"$PET_NNODES\" "
                  "--machine_rank \"$PET_NODE_RANK\" --main_process_ip \"$MASTER_ADDR\" "
                  "--main_process_port \"$MASTER_PORT\", or each pod trains by itself");
  } else if (!launcher.empty()) {
    from->AddLoss("",
                  launcher +
                      " is kept in the command: where its own flags say nothing, it "
                      "starts " +
                      std::to_string(number) +
                      " processes a pod and finds the others by the variables PET_…, which "
                      "PyTorch reads since 1.9" +
                      (chosen ? "; without a number and GPUs the training operator lets it "
                                "start one a core: set env.PET_NPROC_PER_NODE"
                              : ""),
                  !chosen);
  }
}

}  // namespace

void ConvertTorchLaunchers(TorchLauncherOptions* ask, JobBuilder* builder) {
  const bool takes = ReplacesTorchrun(*ask, builder);
  for (auto& [name, from] : ask->templates) {
    job::Role* role = builder->FindRole(name);
    if (role == nullptr) continue;
    if (takes) {
      ReplaceTorchrun(*TorchrunCommandOf(*role), ask->per_node, role, &from);
    } else if (ask->explains) {
      KeepTorchrun(ask->per_node, role, &from);
    }
  }
}

}  // namespace shoal::importer
