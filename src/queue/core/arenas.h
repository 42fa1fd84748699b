// Arenas: the queues that compete for one flavor, with the jobs that hold it in the order of their
// expected ends, and the reservation of the first job that does not fit.
//
// The trees of a flavor are one arena if its capacity may bind before their quotas do; else each
// tree is an arena of its own. Capacities and what is held of them are kept here too.
#pragma once

#include <memory>
#include <vector>

#include "queue/core/amounts.h"
#include "queue/core/job.h"
#include "queue/core/ledger.h"
#include "queue/core/quota_tree.h"

namespace shoal::queue {

// Place of a job in the order of expected ends.
struct EndKey {
  Millis end = kForever;
  int64_t serial = 0;
  JobRef job = kNoIndex;

  friend bool operator<(const EndKey& a, const EndKey& b) {
    return a.end != b.end ? a.end < b.end : a.serial < b.serial;
  }
};

// The start that is kept free for a job: EASY backfill (Lifka 1995), in a tree of quotas. What is
// held at that time is the shadow; jobs may start before only if they end before, or if they fit
// beside the reserved job.
struct Reservation {
  JobRef job = kNoIndex;
  Millis at = kForever;  // kForever: a job before it has no known run time
  EndKey cut;            // jobs up to here have ended by then
  bool missed = false;   // the time has come without the start, since run times were wrong
  QuotaTree::Usage shadow;
  Amounts shadow_held;
  int32_t releases = 0;  // since it was made
};

struct Arena {
  FlavorIndex flavor = kNoIndex;
  std::vector<NodeIndex> roots;
  std::vector<EndKey> ends;  // ascending
  Reservation reservation;
  int32_t elastic = 0;  // jobs of `ends` that can be resized
};

struct FlavorCapacity {
  Amounts total = kNoLimit;
  Amounts largest_node = kNoLimit;  // a task must fit into it
  Amounts held;                     // what jobs are to hold
  Amounts real;                     // what they hold while victims stop
};

// Copyable. Not thread-safe.
class Arenas {
 public:
  // Makes the arenas of the tree for the capacities; they hold no jobs.
  Arenas(const QuotaTree& tree, std::vector<FlavorCapacity> capacities);

  std::vector<Arena>& all() { return arenas_; }
  const std::vector<Arena>& all() const { return arenas_; }
  // The arena of a flavor and a leaf; nullptr if the leaf's tree does not use the flavor.
  Arena* Of(FlavorIndex flavor, NodeIndex leaf) {
    const int32_t index = arena_of_[static_cast<size_t>(flavor)][static_cast<size_t>(leaf)];
    return index == kNoIndex ? nullptr : &arenas_[static_cast<size_t>(index)];
  }
  const Arena* Of(FlavorIndex flavor, NodeIndex leaf) const {
    return const_cast<Arenas*>(this)->Of(flavor, leaf);
  }
  const std::vector<FlavorCapacity>& capacities() const { return capacities_; }
  FlavorCapacity& capacity(FlavorIndex flavor) { return capacities_[static_cast<size_t>(flavor)]; }
  const FlavorCapacity& capacity(FlavorIndex flavor) const {
    return capacities_[static_cast<size_t>(flavor)];
  }

 private:
  std::vector<Arena> arenas_;
  std::vector<std::vector<int32_t>> arena_of_;  // [flavor][node]
  std::vector<FlavorCapacity> capacities_;
};

}  // namespace shoal::queue
