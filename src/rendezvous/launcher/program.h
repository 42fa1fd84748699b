// One attempt of a task's program under a launcher: its process tree, the pipes of what its
// processes print and the pipe of what they report. Used by attempt.cc.
//
// Belongs to the loop's thread, which must be the thread that made it and must outlive the program:
// the kernel ends a program whose parent thread dies.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "host/process/isolation.h"
#include "host/process/process_tree.h"
#include "net/event_loop.h"

namespace shoal::rendezvous {

// What the launcher tells beyond ProcessSpec's: descriptors are the Program's business, those of
// `process.additional` too.
struct ProgramSpec {
  host::ProcessSpec process;
};

struct ProgramCallbacks {
  // What one of its processes printed, standard output and error in one. Answer false to be given
  // no more until Resume.
  std::function<bool(int process, std::string_view bytes)> on_output;
  // An object that it wrote to SHOAL_REPORT_FD.
  std::function<void(const json::object& report)> on_report;
  // Its tree is gone, and all that it printed was told. Once, last.
  std::function<void(const host::ProcessExit& exit)> on_end;
};

// The number under which programs find the pipe for reports.
inline constexpr int kReportFd = 3;

class Program {
 public:
  // Errors are host::ProcessTree::Start's.
  static Result<std::unique_ptr<Program>> Start(net::Loop* loop, ProgramSpec spec,
                                                const host::Isolation& isolation,
                                                ProgramCallbacks callbacks);
  // Kills what is left.
  virtual ~Program() = default;

  // SIGTERM to the programs' groups now, SIGKILL to the tree after the grace; with a signal (0:
  // none) first that one, SIGTERM after the grace, and SIGKILL after another. Again: nothing.
  virtual void Drain(Duration grace, int signal) = 0;
  // To the programs' groups; nothing if they have ended.
  virtual void Signal(int signal) = 0;
  // SIGKILL to the whole tree.
  virtual void Kill() = 0;
  virtual void Resume() = 0;
  virtual Result<host::Usage> Sample() = 0;
  virtual int64_t pid() const = 0;
  virtual std::vector<pid_t> Pids() const = 0;  // of all its live processes
};

}  // namespace shoal::rendezvous
