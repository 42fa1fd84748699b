// Decides how the end of a program counts and whether the task is started again. No actions: the
// callers (attempt_ends.h, group_restart.h) carry the decision out. What a single end means is
// job/policy.h's.
#pragma once

#include <optional>
#include <vector>

#include "job/execution/policy.h"
#include "rendezvous/lifecycle/core_state.h"

namespace shoal::rendezvous {

class RestartPolicy {
 public:
  explicit RestartPolicy(CoreState* state)
      : state_(state), role_restarts_(state->job.roles.size()) {}

  // The end as it counts. An end that this coordinator asked for is a cancellation, and an exit
  // code that follows a signal from elsewhere (an eviction, `docker stop`) is a loss.
  job::TaskEnd EffectiveEnd(const Task& task, const ProgramEnded& how,
                            bool stopping_for_restart) const;
  // `how.end` is EffectiveEnd's. `consequence`: the death follows from another task's.
  job::RestartDecision DecideRestart(const Task& task, const ProgramEnded& how,
                                     bool consequence) const;
  // Whether this death follows from the first one of the generation, which is the cause.
  bool IsConsequence(const job::TaskFailure& death) const;
  // Whether a port conflict of the task may restart the job; false beyond
  // CoreLimits::max_port_conflicts and while the task is being stopped.
  bool MayRestartForPortConflict(const Task& task) const;

  int port_conflicts() const { return port_conflicts_; }
  int restarts() const { return restarts_; }
  bool any_restarted() const { return restarted_; }

  // Apply records: kEnded of `task` (`ran`: its program had been started), kRestart, kStalled.
  void ApplyEnd(const JournalRecord& record, Task* task, bool ran);
  void ApplyRestart(const JournalRecord& record);
  void ApplyStall(const JournalRecord& record);
  void ApplyResumed() { first_death_.reset(); }

 private:
  job::RestartHistory HistoryOf(const Task& task) const;

  CoreState* const state_;
  // From records.
  std::optional<job::TaskFailure> first_death_;
  bool restarted_ = false;          // any task ever was
  int port_conflicts_ = 0;          // that restarted the job
  int restarts_ = 0;                // counted ones, of all tasks together
  int job_restarts_ = 0;            // … of scope job
  std::vector<int> role_restarts_;  // … of scope role, by role
};

}  // namespace shoal::rendezvous
