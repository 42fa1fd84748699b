// Which of rabit's workers connect to each other: the tree in which sums travel up and down, and
// the ring through which lost data is recovered. Source: get_link_map in dmlc-core's tracker.
#pragma once

#include <set>
#include <vector>

namespace shoal::rendezvous {

struct RabitTopology {
  int parent = -1;
  std::vector<int> tree;  // neighbours in the tree: parent, then children
  int previous = -1;      // in the ring; its own rank in a ring of one
  int next = -1;

  // All ranks that it holds a connection to.
  std::set<int> Neighbours(int self) const;
  bool operator==(const RabitTopology&) const = default;
};

// By rank. The tree is binary, and numbered so that the ring 0 → 1 → … → 0 runs along its links
// where it can. O(size).
std::vector<RabitTopology> BuildRabitTopology(int size);

}  // namespace shoal::rendezvous
