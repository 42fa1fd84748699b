// The coordinator of one job: the I/O around CoordinatorCore. Listens for launchers and
// controllers, keeps the journal and the logs, publishes DIR/coordinator.json, and at the end
// writes DIR/verdict.json and ends.
//
// `shoal coordinator --job-dir DIR` (src/cli) runs one; tests run several in one process.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "net/event_loop.h"
#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

struct CoordinatorOptions {
  std::string job_dir;
  std::string host = "127.0.0.1";  // to listen on; published in coordinator.json
  uint16_t port = 0;               // 0: the one of an earlier incarnation if free, else any
  // A batch system's job. SIGTERM and SIGINT, which batch systems send to everything that they end,
  // are ignored; SIGUSR1 suspends the job until its next allocation, SIGUSR2 until it is resumed.
  bool batch = false;
  // No-shared-filesystem mode: the controller does not see `job_dir`. It mirrors journal, logs and
  // outputs, and is waited for before the job begins or ends (docs/formats/rendezvous.md,
  // "No-shared-filesystem mode").
  bool no_shared_filesystem = false;
  // In that mode: this is the job's first coordinator, so no journal exists and the job begins at
  // once (ADR 99).
  bool first_incarnation = false;
  std::string program;  // absolute path of shoal, what "@shoal" stands for in a command
  CoreLimits limits;
  // Whether the controller's process lives. While no controller has connected it is asked every 2
  // s, and the job waits as long as it lives. Empty: unknown. For RunCoordinator.
  std::function<bool()> controller_lives;
  // The longest time that a result waits for others to be synced together with it.
  Duration commit_delay = std::chrono::milliseconds(25);
};

class Coordinator {
 public:
  // Reads DIR (job.json, id, token, the journal) and listens. `on_end` is called once, last: OK
  // when the verdict was written and acknowledged or 5 s have passed, else the error that ended the
  // coordinator (a journal that cannot be written). Errors of this call say what is wrong with DIR.
  static Result<std::unique_ptr<Coordinator>> Start(net::Loop* loop, CoordinatorOptions options,
                                                    std::function<void(const Status&)> on_end);
  // Closes all connections without a message: for the other side like a crash.
  virtual ~Coordinator() = default;

  virtual uint16_t port() const = 0;
  // Number of group commits so far.
  virtual int64_t syncs() const = 0;
  virtual const CoordinatorCore& core() const = 0;
  // Like the controller's commands; for signals.
  virtual void Stop(const std::string& reason) = 0;
  virtual void Suspend(const std::string& reason) = 0;
  // A controller's process lives but has not connected: waits for it (controller_start).
  virtual void AwaitController() = 0;
};

// Runs a coordinator on a loop of its own until it has ended; SIGTERM and SIGINT stop the job. For
// `shoal coordinator`.
Status RunCoordinator(CoordinatorOptions options);

}  // namespace shoal::rendezvous
