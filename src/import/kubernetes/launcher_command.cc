#include "import/kubernetes/launcher_command.h"

#include <algorithm>

#include "job/spec/job.h"
#include "job/text/units.h"

namespace shoal::importer {
namespace {

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// torchrun options with a value, spelled with '_'.
constexpr std::string_view kTorchValues[] = {"nnodes",
                                             "nproc_per_node",
                                             "rdzv_backend",
                                             "rdzv_endpoint",
                                             "rdzv_id",
                                             "rdzv_conf",
                                             "max_restarts",
                                             "monitor_interval",
                                             "start_method",
                                             "role",
                                             "log_dir",
                                             "redirects",
                                             "tee",
                                             "node_rank",
                                             "master_addr",
                                             "master_port",
                                             "local_addr",
                                             "local_ranks_filter",
                                             "r",
                                             "t",
                                             "logs_specs"};
constexpr std::string_view kTorchFlags[] = {"standalone", "use_env"};
// The options among these that control log files, which have no effect here.
constexpr std::string_view kTorchLogs[] = {"log_dir", "redirects", "tee",       "r",
                                           "t",       "role",      "logs_specs"};

template <size_t n>
bool IsIn(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

struct TorchLauncher {
  size_t words = 0;  // words of the launcher itself; 0: no launcher
  std::string python;
  bool use_env = true;  // ranks are in variables only, not in an argument --local-rank
};

// The Python interpreter in torchrun's own directory; Debian and many images have no `python` in
// the path.
std::string PythonBeside(const std::string& torchrun) {
  return torchrun.substr(0, torchrun.size() - BaseName(torchrun).size()) + "python3";
}

TorchLauncher FindLauncher(const std::vector<std::string>& command) {
  if (command.empty()) return {};
  if (BaseName(command[0]) == "torchrun") return {1, PythonBeside(command[0]), true};
  const bool module =
      command.size() > 2 && BaseName(command[0]).starts_with("python") && command[1] == "-m" &&
      (command[2] == "torch.distributed.run" || command[2] == "torch.distributed.launch");
  if (!module) return {};
  return {3, command[0], command[2] == "torch.distributed.run"};
}

// One launcher option.
struct TorchOption {
  std::string name;  // spelled with '_'
  std::string value;
};

// False for an unknown option.
bool ReadOption(const std::vector<std::string>& command, size_t* at, TorchOption* option) {
  const size_t begin = command[*at].find_first_not_of('-');
  if (begin == std::string::npos) return false;
  std::string name = command[*at].substr(begin);
  const size_t equals = name.find('=');
  option->value = equals == std::string::npos ? "" : name.substr(equals + 1);
  name.resize(std::min(equals, name.size()));
  std::replace(name.begin(), name.end(), '-', '_');
  option->name = name;
  if (name == "m" || name == "module" || name == "no_python" || IsIn(kTorchFlags, name))
    return true;
  if (!IsIn(kTorchValues, name)) return false;
  if (equals != std::string::npos) return true;
  if (++*at >= command.size()) return false;
  option->value = command[*at];
  return true;
}

void ApplyTorchOption(const TorchOption& option, TorchrunCommand* line) {
  if (option.name == "nproc_per_node") {
    const auto number = job::ParseInteger(option.value);
    if (number && *number >= 1 && *number <= 1024) line->processes = static_cast<int>(*number);
    if (!number) line->per_node = option.value;
  } else if (option.name == "nnodes") {
    line->nodes = option.value;
  } else if (option.name == "standalone") {
    line->nodes = "1";
  } else if (option.name == "max_restarts") {
    const auto number = job::ParseInteger(option.value);
    if (number && *number >= 0 && *number <= 1000) line->restarts = static_cast<int>(*number);
  } else if (IsIn(kTorchLogs, option.name)) {
    line->lost += (line->lost.empty() ? "--" : ", --") + option.name;
  }
}

}  // namespace

std::optional<TorchrunCommand> ParseTorchrunCommand(const std::vector<std::string>& command) {
  TorchLauncher launcher = FindLauncher(command);
  if (launcher.words == 0) return std::nullopt;
  TorchrunCommand line;
  bool python = true;
  bool module = false;
  size_t at = launcher.words;
  for (; at < command.size() && command[at].starts_with('-'); ++at) {
    TorchOption option;
    if (!ReadOption(command, &at, &option)) return std::nullopt;
    module = module || option.name == "m" || option.name == "module";
    python = python && option.name != "no_python";
    launcher.use_env = launcher.use_env || option.name == "use_env";
    ApplyTorchOption(option, &line);
  }
  if (at >= command.size() || !launcher.use_env) return std::nullopt;
  if (python) {
    line.command = {launcher.python, "-u"};
    if (module) line.command.emplace_back("-m");
  }
  line.command.insert(line.command.end(), command.begin() + static_cast<ptrdiff_t>(at),
                      command.end());
  return line;
}

std::string FindLauncherName(const std::vector<std::string>& command) {
  for (size_t i = 0; i < command.size(); ++i) {
    for (const char* name : {"torchrun", "torch.distributed.run", "torch.distributed.launch"}) {
      if (command[i].find(name) != std::string::npos) return name;
    }
    const bool accelerate = BaseName(command[i]) == "accelerate" && i + 1 < command.size() &&
                            command[i + 1] == "launch";
    for (const char* name :
         {"accelerate launch", "accelerate-launch", "accelerate.commands.launch"}) {
      if (accelerate || command[i].find(name) != std::string::npos) return "accelerate launch";
    }
  }
  return "";
}

bool IsMpirunCommand(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  const std::string first = BaseName(command[0]);
  return first == "mpirun" || first == "mpiexec" || first == "horovodrun" ||
         first == "mpiexec.hydra";
}

int MpiProcessCount(const std::vector<std::string>& command) {
  for (size_t i = 1; i + 1 < command.size(); ++i) {
    if (command[i] != "-np" && command[i] != "-n" && command[i] != "--np") continue;
    const auto number = job::ParseInteger(command[i + 1]);
    return number && *number >= 1 && *number <= job::kMaxTasks ? static_cast<int>(*number) : 0;
  }
  return 0;
}

}  // namespace shoal::importer
