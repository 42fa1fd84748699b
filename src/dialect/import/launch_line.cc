#include "dialect/import/launch_line.h"

#include <algorithm>

#include "job/job.h"
#include "job/units.h"

namespace shoal::dialect {
namespace {

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// torchrun's options with a value, in the spelling with '_'.
constexpr std::string_view kTorchValues[] = {
    "nnodes",        "nproc_per_node",   "rdzv_backend",
    "rdzv_endpoint", "rdzv_id",          "rdzv_conf",
    "max_restarts",  "monitor_interval", "start_method",
    "role",          "log_dir",          "redirects",
    "tee",           "node_rank",        "master_addr",
    "master_port",   "local_addr",       "local_ranks_filter"};
constexpr std::string_view kTorchFlags[] = {"standalone", "use_env"};

template <size_t n>
bool IsIn(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Where the words of the launcher end; 0 if the command has none.
size_t TorchBegin(const std::vector<std::string>& command) {
  if (command.empty()) return 0;
  if (BaseName(command[0]) == "torchrun") return 1;
  const bool module =
      command.size() > 2 && BaseName(command[0]).starts_with("python") && command[1] == "-m" &&
      (command[2] == "torch.distributed.run" || command[2] == "torch.distributed.launch");
  return module ? 3 : 0;
}

}  // namespace

std::optional<TorchLine> ReadTorchLine(const std::vector<std::string>& command) {
  size_t at = TorchBegin(command);
  if (at == 0) return std::nullopt;
  TorchLine line;
  bool python = true;
  bool module = false;
  for (; at < command.size() && command[at].starts_with('-'); ++at) {
    std::string name = command[at].substr(command[at].find_first_not_of('-') == std::string::npos
                                              ? command[at].size()
                                              : command[at].find_first_not_of('-'));
    const size_t equals = name.find('=');
    std::string value = equals == std::string::npos ? "" : name.substr(equals + 1);
    name.resize(std::min(equals, name.size()));
    std::replace(name.begin(), name.end(), '-', '_');
    if (name == "m" || name == "module") {
      module = true;
    } else if (name == "no_python") {
      python = false;
    } else if (IsIn(kTorchValues, name)) {
      if (equals == std::string::npos) {
        if (++at >= command.size()) return std::nullopt;
        value = command[at];
      }
      if (name != "nproc_per_node") continue;
      const auto number = job::ParseInteger(value);
      if (number && *number >= 1 && *number <= 1024) line.processes = static_cast<int>(*number);
      if (!number) line.per_node = value;
    } else if (!IsIn(kTorchFlags, name)) {
      return std::nullopt;
    }
  }
  if (at >= command.size()) return std::nullopt;
  if (python) {
    line.command.push_back(BaseName(command[0]) == "torchrun" ? "python" : command[0]);
    line.command.emplace_back("-u");
    if (module) line.command.emplace_back("-m");
  }
  line.command.insert(line.command.end(), command.begin() + static_cast<ptrdiff_t>(at),
                      command.end());
  return line;
}

bool IsMpiLine(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  const std::string first = BaseName(command[0]);
  return first == "mpirun" || first == "mpiexec" || first == "horovodrun" ||
         first == "mpiexec.hydra";
}

int MpiProcesses(const std::vector<std::string>& command) {
  for (size_t i = 1; i + 1 < command.size(); ++i) {
    if (command[i] != "-np" && command[i] != "-n" && command[i] != "--np") continue;
    const auto number = job::ParseInteger(command[i + 1]);
    return number && *number >= 1 && *number <= job::kMaxTasks ? static_cast<int>(*number) : 0;
  }
  return 0;
}

}  // namespace shoal::dialect
