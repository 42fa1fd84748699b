// Detects a job that makes no progress: no task prints, reports, computes or uses the network for
// `limits.stall`. Launchers are asked for diagnostics first; these are recorded, and then
// `limits.on_stall` is carried out.
#pragma once

#include <optional>
#include <vector>

#include "rendezvous/lifecycle/core_state.h"
#include "rendezvous/lifecycle/group_restart.h"
#include "rendezvous/lifecycle/restart_policy.h"

namespace shoal::rendezvous {

class StallDetector {
 public:
  StallDetector(CoreState* state, GroupRestart* group, RestartPolicy* policy)
      : state_(state), group_(group), policy_(policy) {}

  void On(const StallDiagnostics& event);
  // Counts from now on: nothing is known about the time before this coordinator.
  void Begin();
  // The task was active until `idle` ago.
  void NoteActivity(Task* task, Millis idle);
  // Records that a stalled job moves again. After each event.
  void DetectActivity();
  // Asks for diagnostics, or declares the stall, when the time has come.
  void CheckStall();
  // None while the job cannot stall.
  std::optional<Millis> NextDeadline() const;

  // Apply records: kStalled and kMoving, and any record of a task, which is activity too.
  void Apply(const JournalRecord& record);
  void ApplyActivity(const JournalRecord& record);
  void ApplyResumed() { stalled_ = false; }

 private:
  // Programs run, and none is about to be stopped or started: those have deadlines of their own.
  bool CanStall() const;
  void RequestDiagnostics();
  json::object DiagnosticsOf(const Task& task) const;
  void DeclareStalled();
  void RestartStalled();
  int MaxStallRestarts() const;
  // Tasks with a running program, longest idle first.
  std::vector<int> LongestIdleTasks() const;

  CoreState* const state_;
  GroupRestart* const group_;
  RestartPolicy* const policy_;
  // From records.
  bool stalled_ = false;
  Millis stalled_at_{0};
  int stall_restarts_ = 0;
  // Of this process.
  Millis last_activity_{0};              // of any task
  std::optional<Millis> inspect_until_;  // launchers may answer until then
};

}  // namespace shoal::rendezvous
