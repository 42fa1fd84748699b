// Restarts of scope role and job: all tasks of the scope are drained, then wait for each other and
// start together in a new generation (program_starter.h, FinishGroupRestart).
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/lifecycle/core_state.h"

namespace shoal::rendezvous {

class GroupRestart {
 public:
  explicit GroupRestart(CoreState* state)
      : state_(state),
        restarting_(state->job.roles.size()),
        membership_changed_(state->job.roles.size()) {}

  // Records `restart` (kind kRestart) and drains the running tasks of its scope. `why` is told to
  // their programs' launchers.
  void RestartGroup(JournalRecord restart, const std::string& why);

  // A group restart is under way; due() is when its programs may start at the earliest.
  bool pending() const { return due_.has_value(); }
  std::optional<Millis> due() const { return due_; }
  bool Includes(size_t role) const { return pending() && restarting_[role]; }
  bool IncludesAll() const {
    return pending() &&
           std::find(restarting_.begin(), restarting_.end(), false) == restarting_.end();
  }

  // The role's members are not those that the current description names, and its tasks start
  // together: they must all start again.
  bool membership_changed(size_t role) const { return membership_changed_[role]; }
  void SetMembershipChanged(size_t role, bool changed) { membership_changed_[role] = changed; }

  // Apply records: kRestart, kGeneration, kResumed.
  void ApplyRestart(const JournalRecord& record);
  void ApplyGeneration(const JournalRecord& record);
  void ApplyResumed();

 private:
  static bool InScope(const Task& task, job::RestartScope scope, size_t role);

  CoreState* const state_;
  // From records.
  std::vector<bool> restarting_;  // by role
  std::optional<Millis> due_;     // while any is
  std::vector<bool> membership_changed_;
};

}  // namespace shoal::rendezvous
