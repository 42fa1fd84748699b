// Runs a command beside a running program, in the program's namespaces, control groups, directory
// and environment. The command ends with the program. Used by the engines for `shoal exec`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::host {

// Input of EnteredCommand::Start. Owns no descriptor.
struct EnterSpec {
  pid_t pid = 0;  // the program
  uint64_t start_ticks = 0;
  std::vector<std::string> argv;  // argv[0]: a path, or looked up in the program's PATH
  std::vector<std::string> env;   // "NAME=value", over the program's
  std::vector<std::filesystem::path> group_directories;  // control groups to enter, where permitted
  // If set, the command gets a pseudo-terminal of this size, which Wait connects with fds[0] and
  // fds[1]; otherwise it gets the three descriptors themselves. The caller owns them and keeps them
  // open until Wait returns.
  bool terminal = false;
  uint16_t rows = 24;
  uint16_t columns = 80;
  int fds[3] = {0, 1, 2};
};

// How the command ended.
struct EnteredCommandEnd {
  int exit_code = -1;  // valid if signal is 0
  int signal = 0;
};

// Thread-compatible, except that Signal and Resize may be called while another thread is in Wait.
// The command is killed when this object is destroyed, when the thread that created it ends, and
// when the program ends.
class EnteredCommand {
 public:
  // NotFound if the program has ended; PermissionDenied, with the missing right, if its namespaces
  // cannot be entered.
  static Result<std::unique_ptr<EnteredCommand>> Start(const EnterSpec& spec);
  ~EnteredCommand();
  EnteredCommand(const EnteredCommand&) = delete;
  EnteredCommand& operator=(const EnteredCommand&) = delete;

  // Signals the command's process group, or the terminal's foreground group if there is one.
  void Signal(int signal);
  void Resize(uint16_t rows, uint16_t columns);
  // Waits for the end of the command. Returns an error if it could not be started: NotFound if the
  // command does not exist, PermissionDenied.
  Result<EnteredCommandEnd> Wait();

 private:
  struct State;
  explicit EnteredCommand(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The job's control groups below these bases (CgroupLayout::Bases) that contain the process.
std::vector<std::filesystem::path> FindGroupsOfProcess(
    const std::vector<std::filesystem::path>& bases, const std::string& job, pid_t pid);

}  // namespace shoal::host
