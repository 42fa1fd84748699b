// The coordinator of one job: the I/O around coordinator_core. Listens for launchers and
// controllers, keeps the journal and the logs, publishes DIR/coordinator.json, and at the end
// writes DIR/verdict.json and ends itself.
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
  std::string host = "127.0.0.1";  // to listen at, and told in coordinator.json
  uint16_t port = 0;               // 0: the one of an earlier incarnation if free, else any
  // A batch system's job: SIGTERM and SIGINT, which such a system sends to all that it ends, mean
  // nothing; SIGUSR1 suspends the job, to go on in another allocation, SIGUSR2 for good.
  bool batch = false;
  // The controller does not see `job_dir`: it is told all that it must keep, and is waited for
  // before the job begins or ends (docs/formats/rendezvous.md, "JournalReplication").
  bool no_shared_filesystem = false;
  // JournalReplication: nobody was this coordinator before, so that no journal is anywhere and the
  // job begins at once (ADR 99).
  bool first_incarnation = false;
  std::string program;  // absolute path of shoal, what "@shoal" stands for in a command
  CoreLimits limits;
  // Whether the process that is to control the job lives. While none has connected it is asked
  // every 2 s; as long as it does the job waits for it. Empty: not known. For RunCoordinator.
  std::function<bool()> controller_lives;
  // A result waits at most this long for others to be synced together with it.
  Duration commit_delay = std::chrono::milliseconds(25);
};

class Coordinator {
 public:
  // Reads DIR (job.json, id, token, the journal) and listens. `on_end` is called once, last: OK
  // when the verdict was written and acknowledged or 5 s have passed, else what made it impossible
  // to go on (a journal that cannot be written). Errors say what is wrong with DIR.
  static Result<std::unique_ptr<Coordinator>> Start(net::Loop* loop, CoordinatorOptions options,
                                                    std::function<void(const Status&)> on_end);
  // Closes everything without a word: like a crash, for who is connected.
  virtual ~Coordinator() = default;

  virtual uint16_t port() const = 0;
  // Groups of files synced so far.
  virtual int64_t syncs() const = 0;
  virtual const CoordinatorCore& core() const = 0;
  // As a command of the controller; for SIGTERM.
  virtual void Stop(const std::string& reason) = 0;
  virtual void Suspend(const std::string& reason) = 0;
  // The controller has not connected yet, and is waited for (controller_start).
  virtual void AwaitController() = 0;
};

// Runs one on a loop of its own until it has ended; SIGTERM and SIGINT stop the job. For
// `shoal coordinator`.
Status RunCoordinator(CoordinatorOptions options);

}  // namespace shoal::rendezvous
