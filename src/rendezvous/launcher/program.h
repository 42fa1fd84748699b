// The processes of one attempt: their tree, the pipes of their output and the pipe of their
// reports. Used by attempt.cc.
//
// Belongs to the loop's thread, which must be the thread that created it and must outlive the
// program: the kernel kills a program whose parent thread ends.
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

// What to run. Program sets all descriptors itself, those of `process.additional` too.
struct ProgramSpec {
  host::ProcessSpec process;
};

struct ProgramCallbacks {
  // Output of one process, standard output and error merged. Return false to get no more until
  // Resume.
  std::function<bool(int process, std::string_view bytes)> on_output;
  // An object that a process wrote to SHOAL_REPORT_FD.
  std::function<void(const json::object& report)> on_report;
  // All processes are gone and all output was delivered. Once, last.
  std::function<void(const host::ProcessExit& exit)> on_end;
};

// The descriptor number of the report pipe in programs.
inline constexpr int kReportFd = 3;

class Program {
 public:
  // Errors are host::ProcessTree::Start's.
  static Result<std::unique_ptr<Program>> Start(net::Loop* loop, ProgramSpec spec,
                                                const host::Isolation& isolation,
                                                ProgramCallbacks callbacks);
  // Kills processes that are left.
  virtual ~Program() = default;

  // Sends SIGTERM to the programs' process groups now and SIGKILL to the tree after the grace. With
  // a signal (0: none): that signal first, SIGTERM after the grace and SIGKILL after another grace.
  // Repeated calls do nothing.
  virtual void Drain(Duration grace, int signal) = 0;
  // Sends a signal to the programs' process groups; nothing if they have ended.
  virtual void Signal(int signal) = 0;
  // SIGKILL to the whole tree.
  virtual void Kill() = 0;
  virtual void Resume() = 0;
  virtual Result<host::Usage> Sample() = 0;
  virtual int64_t pid() const = 0;
  virtual std::vector<pid_t> Pids() const = 0;  // all live processes of the tree
};

}  // namespace shoal::rendezvous
