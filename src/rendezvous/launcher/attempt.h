// One attempt of a task under its launcher: scratch directory, environment, program, readiness, the
// watch over its ports, the lines that the job waits for, and how it has ended. launcher.cc makes
// one for each order to start and carries what it tells to the coordinator.
//
// Belongs to the loop's thread, which must be the process's main one (program.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "host/process/isolation.h"
#include "host/process/process_tree.h"
#include "net/event_loop.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {

struct AttemptSpec {
  StartMessage start;
  std::string job_dir;
  std::string job_id;
  std::string role;
  int index = 0;
  std::string host;             // that the coordinator knows this machine by
  std::vector<uint16_t> ports;  // leased for the task
  std::string cluster;          // the description's text
  host::Isolation isolation;
  bool trust_reported_conflict = false;  // a last line that says that an address is in use
};

struct AttemptCallbacks {
  // What goes into the attempt's log. Answer false to be given no more until Resume.
  std::function<bool(std::string_view text)> on_log;
  // An object that a program wrote to SHOAL_REPORT_FD.
  std::function<void(const json::object& report)> on_report;
  // ready() or port_conflict() has changed.
  std::function<void()> on_change;
  // Nothing of it runs any more, and all of its log was given. Once, last; may be called before
  // Attempt::Start has returned, of a program that could not be started. `log_bytes` is not set.
  // The Attempt must outlive this call.
  std::function<void(EndedMessage ended)> on_end;
};

class Attempt {
 public:
  static std::unique_ptr<Attempt> Make(net::Loop* loop, AttemptSpec spec,
                                       AttemptCallbacks callbacks);
  // Kills what is left.
  virtual ~Attempt() = default;

  // Starts the program. A failure is an end too, and told by on_end before this returns.
  virtual void Start() = 0;
  // SIGTERM now, SIGKILL after the grace (none: the order's own); with a signal that one now,
  // SIGTERM after the grace and SIGKILL after another. Again: nothing.
  virtual void Drain(Duration grace, int signal) = 0;
  virtual void Drain() = 0;
  // The same, told by others than the coordinator: `by` completes "its launcher …". An end that
  // follows says so, unless the coordinator had asked for it before.
  virtual void Interrupt(const std::string& by) = 0;
  virtual void Kill() = 0;
  virtual void Resume() = 0;
  // A new description of the cluster, for SHOAL_CLUSTER_FILE.
  virtual Status Describe(std::string cluster) = 0;

  virtual bool running() const = 0;
  virtual bool ready() const = 0;
  // Who listens on one of the task's ports; empty: nobody but it.
  virtual const std::string& port_conflict() const = 0;
  // That somebody listens there is the program's word only.
  virtual bool conflict_is_only_reported() const = 0;
  // As it was sampled last, at most a second ago.
  virtual const host::Usage& usage() const = 0;
  // For how long it has stood still (movement.h); nothing if nobody asked to watch that.
  virtual std::optional<Duration> still() const = 0;
  // What it is doing now, for people (diagnostics.h).
  virtual json::object Inspect() const = 0;
};

}  // namespace shoal::rendezvous
