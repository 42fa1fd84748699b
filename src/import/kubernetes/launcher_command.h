// Parses command lines that begin with a process launcher, which Shoal replaces.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shoal::importer {

// A command `torchrun …`, `python -m torch.distributed.run …` or `… .launch …`, taken apart.
struct TorchrunCommand {
  std::vector<std::string> command;
  int processes = 0;            // --nproc-per-node; 0 if absent or not a number
  std::string per_node;         // --nproc-per-node if not a number: "gpu", "auto"
  std::string nodes;            // --nnodes; "1" for --standalone
  std::optional<int> restarts;  // --max-restarts
  std::string lost;             // launcher options that have no effect here: "--log_dir, --tee"
};
// nullopt if the command is no torchrun command, has an unknown launcher option, or passes ranks as
// arguments (`launch` without --use-env).
std::optional<TorchrunCommand> ParseTorchrunCommand(const std::vector<std::string>& command);

// The name of a PyTorch launcher ("torchrun", "torch.distributed.launch", "accelerate launch" …)
// anywhere in the command, also within a shell script; empty if there is none.
std::string FindLauncherName(const std::vector<std::string>& command);

// True if the first word is mpirun, mpiexec or horovodrun, with or without a path.
bool IsMpirunCommand(const std::vector<std::string>& command);
// The value of -np, -n or --np; 0 if absent.
int MpiProcessCount(const std::vector<std::string>& command);

}  // namespace shoal::importer
