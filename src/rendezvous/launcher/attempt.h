// One attempt of a task under its launcher: scratch directory, environment, program, readiness
// check, port conflicts, watched log lines, and the end. launcher.cc creates one for each start
// message and forwards what it reports.
//
// Belongs to the loop's thread, which must be the process's main thread (program.h).
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
#include "rendezvous/launcher/engine_interface.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {

struct AttemptSpec {
  StartMessage start;
  std::string job_dir;
  std::string job_id;
  std::string role;
  int index = 0;
  std::string host;             // the address by which the coordinator knows this machine
  std::vector<uint16_t> ports;  // leased for the task
  std::string cluster;          // JSON text of the cluster description
  host::Isolation isolation;
  bool trust_reported_conflict =
      false;  // accept "address in use" in the last line as a port conflict
  // For how long a good end waits for a signal of the engine (engine_interface.h).
  Duration settle = SignalSpread();
};

struct AttemptCallbacks {
  // Bytes for the attempt's log. Return false to get no more until Resume.
  std::function<bool(std::string_view text)> on_log;
  // An object that the program wrote to SHOAL_REPORT_FD.
  std::function<void(const json::object& report)> on_report;
  // ready() or port_conflict() has changed.
  std::function<void()> on_change;
  // The attempt is over: no process of it runs and all of its log was delivered. Called once, last;
  // may be called before Attempt::Start has returned if the program could not be started.
  // `log_bytes` is not set. The Attempt must outlive this call.
  std::function<void(EndedMessage ended)> on_end;
};

class Attempt {
 public:
  static std::unique_ptr<Attempt> Make(net::Loop* loop, AttemptSpec spec,
                                       AttemptCallbacks callbacks);
  // Kills processes that are left.
  virtual ~Attempt() = default;

  // Starts the program. A failure is reported by on_end before this returns.
  virtual void Start() = 0;
  // Sends SIGTERM now and SIGKILL after the grace (default: that of the start message). With a
  // signal (0: none): that signal now, SIGTERM after the grace and SIGKILL after another grace.
  // Repeated calls do nothing.
  virtual void Drain(Duration grace, int signal) = 0;
  virtual void Drain() = 0;
  // Drains on behalf of something other than the coordinator: `by` completes "its launcher …". The
  // end that follows says so, unless the coordinator had asked for it before.
  virtual void Interrupt(const std::string& by) = 0;
  virtual void Kill() = 0;
  virtual void Resume() = 0;
  // A new cluster description, for SHOAL_CLUSTER_FILE.
  virtual Status Describe(std::string cluster) = 0;

  virtual bool running() const = 0;
  virtual bool ready() const = 0;
  // Names the process that has one of the task's ports; empty: none but the task's own.
  virtual const std::string& port_conflict() const = 0;
  // The port conflict is known only from the program's own output.
  virtual bool conflict_is_only_reported() const = 0;
  // The last sample, at most one second old.
  virtual const host::Usage& usage() const = 0;
  // For how long the task has been idle (activity_tracker.h); none if the coordinator did not ask.
  virtual std::optional<Duration> still() const = 0;
  // What its processes are doing, for people (stall_diagnostics.h).
  virtual json::object Inspect() const = 0;
};

}  // namespace shoal::rendezvous
