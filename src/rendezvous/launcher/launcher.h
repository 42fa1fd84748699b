// The launcher of one task (`shoal task`): joins the job at its coordinator, leases the task's
// ports, runs its program as ordered, and keeps the program's end until the coordinator has stored
// it.
//
// Must run on the process's main thread: programs die with the thread that started them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "host/process/isolation.h"
#include "net/event_loop.h"

namespace shoal::rendezvous {

struct LauncherOptions {
  std::string job_dir;
  std::string role;
  int index = -1;  // -1: any
  int incarnation = 0;
  // The numeric address at which other tasks reach this one; empty: the source address of the route
  // to the coordinator.
  std::string host;
  // The engine's name of this host; empty: the host cannot be excluded. RunLauncher takes
  // SHOAL_NODE, else the host name.
  std::string node;
  // How long to dial the coordinator, at the start and after a lost connection. RunLauncher takes
  // job.json's value.
  Duration coordinator_timeout = std::chrono::seconds(30);
  // At the start, if longer: the coordinator may not have been placed on a host yet.
  Duration at_first{0};
  bool no_shared_filesystem =
      false;  // the coordinator's directory is not visible here; RunLauncher then sets `at_first`
  host::Isolation isolation;
  // Finds the isolation when the first program starts, because that takes a while. Optional.
  std::function<host::Isolation()> find_isolation;
  // The program's output is copied to this descriptor as far as that does not block; -1: no copy.
  // No copy into a file where the launcher writes the log itself.
  int copy_fd = -1;
};

class Launcher {
 public:
  // `on_end` is called once, last, when the program is gone: 0 if the task's result is stored and
  // nothing is left to do, job::kExitHostExcluded if this host is excluded, else 77.
  static Result<std::unique_ptr<Launcher>> Start(net::Loop* loop, LauncherOptions options,
                                                 std::function<void(int exit_code)> on_end);
  // Kills the program.
  virtual ~Launcher() = default;

  // For SIGTERM: drains the program and delivers its end if possible, then ends with 77 or 0.
  virtual void Stop() = 0;
};

// Runs a launcher on a loop of its own with the best isolation available, until it ends or is
// stopped by SIGTERM or SIGINT. Returns the exit code.
int RunLauncher(LauncherOptions options);

}  // namespace shoal::rendezvous
