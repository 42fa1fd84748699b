// Which launcher serves which task: joining, reconnecting, waiting for a slot that is occupied,
// leasing ports, falling silent and being lost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/lifecycle/core_state.h"
#include "rendezvous/lifecycle/group_restart.h"
#include "rendezvous/lifecycle/host_exclusions.h"
#include "rendezvous/lifecycle/program_starter.h"
#include "rendezvous/lifecycle/stall_detector.h"

namespace shoal::rendezvous {

class AttemptEnds;

// A slot has at most one launcher. A later incarnation of the same slot waits until the earlier one
// is known dead, and then takes its place.
class Membership {
 public:
  Membership(CoreState* state, HostExclusions* exclusions, GroupRestart* group,
             ProgramStarter* starter, StallDetector* stall, AttemptEnds* ends)
      : state_(state),
        exclusions_(exclusions),
        group_(group),
        starter_(starter),
        stall_(stall),
        ends_(ends) {}

  void On(const LauncherJoined& event);
  void On(const PortsLeased& event);
  void On(const LauncherDisconnected& event);
  void On(const LauncherLost& event);
  void On(const LauncherHeartbeat& event);

  // Gives the task to a connected launcher, which is to lease ports for it.
  void AssignLauncher(int number, const LauncherJoined& hello);
  // Takes the task from its launcher, which is dead or given up, and ends its program. `last`: the
  // end of that program, where the launcher still reported it; null: the program is lost. `silent`:
  // the launcher was given up only because nothing was heard of it.
  void LoseLauncher(int number, const std::string& why, const ProgramEnded* last = nullptr,
                    bool silent = false);
  // Sends away launchers on excluded hosts whose program does not run.
  void ReleaseFromExcludedHosts();
  // Suspects or gives up a launcher that has been silent for too long.
  void CheckLauncher(int number);
  // Refuses every launcher that waits for a slot.
  void RefuseWaiting(const std::string& why);

  // All roles are complete, or have their minimum and no launcher has joined for a while.
  bool CanStart() const;
  bool HasMinimumLeased() const;

 private:
  struct Waiting {
    LauncherJoined hello;
    int task;
  };
  std::optional<int> ChooseTask(const LauncherJoined& event, std::string* why_not) const;
  void Rejoin(int number, const LauncherJoined& hello);
  void JoinOccupiedSlot(int number, const LauncherJoined& hello);
  void AssignWaitingLauncher(int number);
  bool AllLeased() const;

  CoreState* const state_;
  HostExclusions* const exclusions_;
  GroupRestart* const group_;
  ProgramStarter* const starter_;
  StallDetector* const stall_;
  AttemptEnds* const ends_;
  std::vector<Waiting> waiting_;  // for an occupied slot, oldest first
};

}  // namespace shoal::rendezvous
