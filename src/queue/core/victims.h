// Chooses which running jobs shrink or are preempted so that a waiting job can start.
#pragma once

#include <optional>
#include <vector>

#include "queue/core/scheduler_state.h"

namespace shoal::queue {

struct Victim {
  JobRef job = kNoIndex;
  int32_t size = 0;  // that it keeps; 0: preempted
};

struct VictimPlan {
  FlavorIndex flavor = kNoIndex;
  std::vector<Victim> victims;
};

// The victims for a waiting job that cannot start on any flavor now; nothing if it may not take
// what it needs from others. A plan without victims: it displaces a reservation only. Pure.
//
// In this order: elastic jobs shrink towards their minimum; jobs of its own queue with a lower
// priority; jobs of queues that borrow, if the job's own queue stays within its nominal quota
// (never below that of theirs). Among these, lower priority first, then least lost work since the
// last checkpoint. No victim of the result can be spared, and no two jobs can preempt each other in
// turn: the beneficiary has either a higher priority in the same queue, or does not borrow where
// its victim does. O(r log r) for r running jobs of the arena.
std::optional<VictimPlan> FindVictims(const SchedulerState& state, JobRef job);

// True if FindVictims could find something; O(1) for most jobs that cannot preempt.
bool MayPreempt(const SchedulerState& state, JobRef job, FlavorIndex flavor);

}  // namespace shoal::queue
