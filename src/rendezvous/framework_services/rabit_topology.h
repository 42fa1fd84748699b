// Who is whose neighbour among rabit's workers: the tree that sums go up and down, the ring that
// lost data comes back by. Source: get_link_map in dmlc-core's tracker.
#pragma once

#include <set>
#include <vector>

namespace shoal::rendezvous {

struct RabitTopology {
  int parent = -1;
  std::vector<int> tree;  // neighbours in the tree: parent, then children
  int previous = -1;      // in the ring; its own rank in a ring of one
  int next = -1;

  // All whom it holds a connection to.
  std::set<int> Neighbours(int self) const;
  bool operator==(const RabitTopology&) const = default;
};

// By rank. The tree is binary, and laid so that the ring, which is 0 → 1 → … → 0, runs along its
// links where it can. O(size).
std::vector<RabitTopology> BuildRabitTopology(int size);

}  // namespace shoal::rendezvous
