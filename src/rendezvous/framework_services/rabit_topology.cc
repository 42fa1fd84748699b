#include "rendezvous/framework_services/rabit_topology.h"

#include <algorithm>
#include <cstddef>

namespace shoal::rendezvous {
namespace {

// Nodes of the heap-shaped tree in the ring's order: a node, then its subtrees, the last of them
// backwards, so that the end of the walk lies next to its beginning. Depth: log2(size).
void Walk(int node, int size, std::vector<int>* order) {
  std::vector<int> children;
  for (const int child : {2 * node + 1, 2 * node + 2}) {
    if (child < size) children.push_back(child);
  }
  order->push_back(node);
  for (size_t i = 0; i < children.size(); ++i) {
    const auto from = static_cast<std::ptrdiff_t>(order->size());
    Walk(children[i], size, order);
    if (i + 1 == children.size()) std::reverse(order->begin() + from, order->end());
  }
}

}  // namespace

std::set<int> RabitTopology::Neighbours(int self) const {
  std::set<int> all(tree.begin(), tree.end());
  all.insert({previous, next});
  all.erase(self);
  all.erase(-1);
  return all;
}

std::vector<RabitTopology> BuildRabitTopology(int size) {
  std::vector<int> order;
  Walk(0, size, &order);
  std::vector<int> rank(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    rank[static_cast<size_t>(order[i])] = static_cast<int>(i);
  }
  std::vector<RabitTopology> links(order.size());
  for (int node = 0; node < size; ++node) {
    const int self = rank[static_cast<size_t>(node)];
    RabitTopology& at = links[static_cast<size_t>(self)];
    at.previous = (self + size - 1) % size;
    at.next = (self + 1) % size;
    if (node > 0) {
      at.parent = rank[static_cast<size_t>((node - 1) / 2)];
      at.tree.push_back(at.parent);
    }
    for (const int child : {2 * node + 1, 2 * node + 2}) {
      if (child < size) at.tree.push_back(rank[static_cast<size_t>(child)]);
    }
  }
  return links;
}

}  // namespace shoal::rendezvous
