// A command beside a running program: in its namespaces, control groups, directory and environment,
// so that it sees what the program sees and ends with it. Used by the local engine for `shoal
// exec`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::host {

struct EnterSpec {
  pid_t pid = 0;  // the program
  uint64_t start_ticks = 0;
  std::vector<std::string> argv;  // argv[0]: a path, or looked up in the program's PATH
  std::vector<std::string> env;   // "NAME=value", over the program's
  std::vector<std::filesystem::path>
      group_directories;  // control groups to enter, as far as that is allowed
  // A terminal of its own, of this size, that Wait connects with the first two of these
  // descriptors; else the command has the three themselves. They stay the caller's and open until
  // the end of Wait.
  bool terminal = false;
  uint16_t rows = 24;
  uint16_t columns = 80;
  int fds[3] = {0, 1, 2};
};

struct EnteredCommandEnd {
  int exit_code = -1;  // valid if signal is 0
  int signal = 0;
};

// Thread-compatible; Signal and Resize may be called from signal handlers' threads while another is
// in Wait. The command dies with this object, with the thread that made it, and with the program.
class EnteredCommand {
 public:
  // NotFound if the program has ended; PermissionDenied, with what is needed, if its namespaces may
  // not be entered.
  static Result<std::unique_ptr<EnteredCommand>> Start(const EnterSpec& spec);
  ~EnteredCommand();
  EnteredCommand(const EnteredCommand&) = delete;
  EnteredCommand& operator=(const EnteredCommand&) = delete;

  // To the command's process group (its session's foreground group if it has a terminal).
  void Signal(int signal);
  void Resize(uint16_t rows, uint16_t columns);
  // Until the command has ended, or the program has, which kills it. An error if it could not be
  // started: NotFound for no such command, PermissionDenied.
  Result<EnteredCommandEnd> Wait();

 private:
  struct State;
  explicit EnteredCommand(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Of the groups of the job below these bases (CgroupLayout::Bases), those that hold the process.
std::vector<std::filesystem::path> FindGroupsOfProcess(
    const std::vector<std::filesystem::path>& bases, const std::string& job, pid_t pid);

}  // namespace shoal::host
