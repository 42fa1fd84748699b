// Runs a job's rules: gives events to the CoordinatorCore at the job's time, passes its actions to
// the DurabilityGate, and wakes for the core's next deadline. Used by coordinator.cc.
//
// Lifecycle: OpenJournal, Begin, Handle until End. Events before Begin and after End are dropped.
// Belongs to the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/event_loop.h"
#include "rendezvous/coordinator/durability_gate.h"
#include "rendezvous/coordinator/job_clock.h"
#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

class CoreRunner {
 public:
  // `beat`: how often the caller has the clock report lost time. `note` takes sentences for people.
  CoreRunner(net::Loop* loop, job::Job job, const CoreLimits& limits, Duration beat,
             std::function<void(const std::string&)> note);
  ~CoreRunner();
  CoreRunner(const CoreRunner&) = delete;

  // Opens DIR/journal and restores the core and its time from it. Returns the records of earlier
  // coordinators, oldest first.
  Result<std::vector<JournalRecord>> OpenJournal(const std::string& job_dir, Duration commit_delay,
                                                 DurabilityGateCallbacks calls);
  // `resumes`: how often the job was to be resumed.
  void Begin(int resumes);
  bool begun() const { return begun_; }
  void Handle(const Event& event);
  void End();

  const CoordinatorCore& core() const { return core_; }
  JobClock& clock() { return clock_; }
  // Null before OpenJournal.
  DurabilityGate* gate() const { return gate_.get(); }

 private:
  void Execute(const std::vector<Action>& actions);
  void ArmTick();

  net::Loop* const loop_;
  JobClock clock_;
  CoordinatorCore core_;
  std::unique_ptr<DurabilityGate> gate_;
  bool restored_ = false;  // from an earlier coordinator's journal
  bool begun_ = false;
  bool ended_ = false;
  std::optional<Millis> armed_;  // the deadline of tick_timer_
  net::Loop::Id tick_timer_ = 0;
};

}  // namespace shoal::rendezvous
