// Stops tasks: on command, on suspension, after the role they follow has ended, and with SIGKILL
// when the grace is over. Lets launchers exit when their task cannot start again.
#pragma once

#include <string>

#include "rendezvous/lifecycle/core_state.h"

namespace shoal::rendezvous {

class Membership;

class StopPolicy {
 public:
  StopPolicy(CoreState* state, Membership* membership) : state_(state), membership_(membership) {}

  void On(const Command& event);
  void On(const Suspend& event);

  // SIGTERM to the task's program; a task without one ends at once (true).
  bool DrainTask(int number, const std::string& why);
  // Drains the followers of every role that has ended, and the tasks that the stop mode names. True
  // if a task has ended by that. O(tasks).
  bool DrainFollowers();
  bool DrainForStop();
  // SIGKILL after the grace; a task that does not even end after that is given up as lost.
  void CheckDraining(int number);
  // Releases launchers of tasks that no other task's death can start again.
  void ReleaseFinished();

 private:
  CoreState* const state_;
  Membership* const membership_;
};

}  // namespace shoal::rendezvous
