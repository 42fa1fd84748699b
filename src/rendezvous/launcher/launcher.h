// The launcher of one task (`shoal task`): joins the job at its coordinator, leases the task's
// ports, runs its program as it is told, and keeps what became of it until that is stored.
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
  // The numeric address at which other tasks reach this one; empty: that of the route to the
  // coordinator.
  std::string host;
  // How the engine calls this host; empty: nobody can exclude it. RunLauncher: SHOAL_NODE, else the
  // system's name.
  std::string node;
  // How long to look for the coordinator, at first and when it was lost. RunLauncher takes what
  // job.json says.
  Duration coordinator_timeout = std::chrono::seconds(30);
  // At first, where that is longer: its coordinator may only be on its way to a host.
  Duration at_first{0};
  bool no_shared_filesystem =
      false;  // it does not see the coordinator's directory: RunLauncher sets `at_first`
  host::Isolation isolation;
  // Gives it instead, when the first program is to start: finding out takes a while.
  std::function<host::Isolation()> find_isolation;
  // What the program prints goes here too, as far as it does not block; -1: no. Not into a file
  // when the log itself is written here.
  int copy_fd = -1;
};

class Launcher {
 public:
  // `on_end` is called once, last: 0 once the task's result is stored and nothing is left to do,
  // job::kExitHostExcluded if this host is not to be used for it any more, else 77; its program is
  // gone by then.
  static Result<std::unique_ptr<Launcher>> Start(net::Loop* loop, LauncherOptions options,
                                                 std::function<void(int exit_code)> on_end);
  // Kills the program.
  virtual ~Launcher() = default;

  // For SIGTERM: drains the program, delivers its end if that is possible, ends with 77 or 0.
  virtual void Stop() = 0;
};

// Runs one on a loop of its own, with the best isolation there is; SIGTERM and SIGINT stop it.
// Gives the exit code. For `shoal task`.
int RunLauncher(LauncherOptions options);

}  // namespace shoal::rendezvous
