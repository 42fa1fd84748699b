// Starts programs: when a task is due, its role's turn has come (`after`) and its group is
// complete. Also issues the generations of the cluster description that programs start with.
#pragma once

#include "rendezvous/lifecycle/core_state.h"
#include "rendezvous/lifecycle/group_restart.h"
#include "rendezvous/lifecycle/host_exclusions.h"

namespace shoal::rendezvous {

class ProgramStarter {
 public:
  ProgramStarter(CoreState* state, GroupRestart* group, const HostExclusions* exclusions)
      : state_(state), group_(group), exclusions_(exclusions) {}

  // False if the task is not to start now. O(roles), and O(tasks) on a restart.
  bool StartIfDue(int number);
  void StartAll();
  // Starts the tasks whose role waited for another one (`after`). O(tasks) for each wave.
  void StartUnblocked();
  // The order of roles, a group restart under way or an excluded host keeps the task from starting.
  bool IsStartBlocked(int number) const;

  // Records a new generation with the current description and sends it to every launcher.
  void IssueGeneration(bool after_group_restart = false);
  // Sends the description, which tells who has ended well, once record `after` is stored.
  void BroadcastEnds(int64_t after);
  // Issues a generation and starts the group, if every task of the group restart has ended and is
  // back. O(tasks).
  void FinishGroupRestart();
  // Reacts to roles whose members have changed: a new generation, and a group restart where the
  // role's tasks start together.
  void ApplyMembershipChanges();

 private:
  CoreState* const state_;
  GroupRestart* const group_;
  const HostExclusions* const exclusions_;
};

}  // namespace shoal::rendezvous
