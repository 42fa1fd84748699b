// What launchers report of a running program: ready, results, a port conflict, its end. Carries out
// what RestartPolicy decides.
#pragma once

#include <string>

#include "rendezvous/lifecycle/core_state.h"
#include "rendezvous/lifecycle/group_restart.h"
#include "rendezvous/lifecycle/host_exclusions.h"
#include "rendezvous/lifecycle/program_starter.h"
#include "rendezvous/lifecycle/restart_policy.h"

namespace shoal::rendezvous {

class Membership;

class AttemptEnds {
 public:
  AttemptEnds(CoreState* state, RestartPolicy* policy, HostExclusions* exclusions,
              GroupRestart* group, ProgramStarter* starter, Membership* membership)
      : state_(state),
        policy_(policy),
        exclusions_(exclusions),
        group_(group),
        starter_(starter),
        membership_(membership) {}

  void On(const ProgramReady& event);
  void On(const ProgramResult& event);
  void On(const ProgramEnded& event);
  void On(const PortConflict& event);

  // Records the end of the running attempt and what follows from it: another attempt, a group
  // restart, an excluded host. The acknowledgement waits until the record is stored.
  void EndAttempt(int number, const ProgramEnded& how);

 private:
  // Restarts the whole job; the task's launcher leases other ports. Does not count as a restart.
  void RestartGroupForPortConflict(int number, const std::string& how);

  CoreState* const state_;
  RestartPolicy* const policy_;
  HostExclusions* const exclusions_;
  GroupRestart* const group_;
  ProgramStarter* const starter_;
  Membership* const membership_;
};

}  // namespace shoal::rendezvous
