// Elastic roles: `shoal scale`, slots that the job gives up, and slots that the engine refuses.
// docs/design/task-lifecycle.md has the rules.
#pragma once

#include <string>

#include "rendezvous/lifecycle/core_state.h"
#include "rendezvous/lifecycle/group_restart.h"
#include "rendezvous/lifecycle/host_exclusions.h"
#include "rendezvous/lifecycle/stop_policy.h"

namespace shoal::rendezvous {

class RoleScaling {
 public:
  RoleScaling(CoreState* state, GroupRestart* group, const HostExclusions* exclusions,
              StopPolicy* stop)
      : state_(state), group_(group), exclusions_(exclusions), stop_(stop) {}

  void On(const Scale& event);
  void On(const LauncherRefused& event);
  // Ends a slot of an elastic role as lost. Whether the job goes on is SuccessPolicy's decision.
  void AbandonTask(int number, const std::string& why);
  // Leaving parameter servers that were killed or failed before they had moved their rows count as
  // dead servers: their slots are created again, so that the rows come back from the checkpoint, or
  // the clients learn of their loss.
  void RecreateLostServers();

  // Applies kScale.
  void ApplyScale(const JournalRecord& record);

 private:
  // Why the role cannot be scaled now; empty: it can.
  std::string ScaleRefusal(const Scale& event) const;
  // Whether server 0 of a role with one copy of each row is away and no other server runs. Started
  // as the only server, it takes over all rows; beside a new one it could not know which are its.
  // `first`: its number. O(servers).
  bool IsLostLeader(int first) const;
  // The slot is empty, or its task failed: scaling the role up creates it again.
  static bool IsRecreatedByScale(const Task& task);

  CoreState* const state_;
  GroupRestart* const group_;
  const HostExclusions* const exclusions_;
  StopPolicy* const stop_;
};

}  // namespace shoal::rendezvous
