// Command lines that begin with a launcher of processes, of which Shoal takes the place.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shoal::importer {

// `torchrun …`, `python -m torch.distributed.run …` and `… .launch …` without the launcher: its
// program and arguments as torchrun would start them.
struct TorchrunCommand {
  std::vector<std::string> command;
  int processes = 0;            // --nproc-per-node; 0 if it is not said
  std::string per_node;         // what else it said there: "gpu", "auto"
  std::string nodes;            // --nnodes; "1" for --standalone
  std::optional<int> restarts;  // --max-restarts
  std::string lost;             // options that have no effect without it: "--log_dir, --tee"
};
// Nothing if the command is something else, has an option of the launcher that is not known, or
// passes ranks as arguments (`launch` without --use-env).
std::optional<TorchrunCommand> ParseTorchrunCommand(const std::vector<std::string>& command);

// "torchrun", "torch.distributed.launch", "accelerate launch", …: the launcher of PyTorch's that
// stands anywhere in the command, also within a shell's script; empty if there is none.
std::string FindLauncherName(const std::vector<std::string>& command);

// True if the first word is mpirun, mpiexec or horovodrun (perhaps with a path).
bool IsMpirunCommand(const std::vector<std::string>& command);
// The number behind -np, -n or --np; 0 if there is none.
int MpiProcessCount(const std::vector<std::string>& command);

}  // namespace shoal::importer
