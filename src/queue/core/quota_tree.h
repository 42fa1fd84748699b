// The tree of queues with its quotas, compiled for fast checks, and the usage of its nodes.
//
// The semantics are those of Kueue's cohorts: a node has a nominal quota for each resource of each
// flavor; what its children may lend adds to the quota of its subtree; a child uses its own
// unlent quota first and the remainder is charged to its parent. Each root is a tree of its own.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "queue/core/amounts.h"
#include "queue/policy/policy.h"

namespace shoal::queue {

using NodeIndex = int32_t;
using FlavorIndex = int32_t;
inline constexpr int32_t kNoIndex = -1;

// Immutable after construction; the policy must be valid (ValidatePolicy).
class QuotaTree {
 public:
  struct Node {
    QueueSpec spec;
    NodeIndex parent = kNoIndex;
    NodeIndex root = kNoIndex;
    bool leaf = true;                  // only leaves take jobs
    std::vector<NodeIndex> path;       // root first, this node last
    std::vector<NodeIndex> limited;    // nodes of the path with limits per user or team
    std::vector<FlavorIndex> flavors;  // in order of preference
  };
  // Quota of one node in one flavor.
  struct Cell {
    Amounts local;    // never lent
    Amounts subtree;  // own and lendable quota of the children
    Amounts borrow;   // kUnlimited: no limit
    Amounts own;      // nominal quota of this node alone
  };

  explicit QuotaTree(const Policy& policy);

  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(NodeIndex index) const { return nodes_[static_cast<size_t>(index)]; }
  // True if a queue is drained.
  bool drains() const { return drains_; }
  size_t flavor_count() const { return flavor_names_.size(); }
  const std::string& flavor_name(FlavorIndex flavor) const {
    return flavor_names_[static_cast<size_t>(flavor)];
  }
  // kNoIndex if there is none of this name.
  NodeIndex FindNode(const std::string& name) const;
  FlavorIndex FindFlavor(const std::string& name) const;
  const Cell& cell(FlavorIndex flavor, NodeIndex node) const {
    return cells_[static_cast<size_t>(flavor)][static_cast<size_t>(node)];
  }
  // True if a queue of the tree of `root` has a quota of this resource.
  bool Limits(FlavorIndex flavor, NodeIndex root, size_t resource) const;
  // Nominal quota of all nodes of a tree together: the most that its jobs can use.
  const Amounts& Whole(FlavorIndex flavor, NodeIndex root) const {
    return wholes_[static_cast<size_t>(flavor)][static_cast<size_t>(root)];
  }
  // The most that a job of `leaf` can ever use of the flavor, when nothing else runs.
  Amounts Most(FlavorIndex flavor, NodeIndex leaf) const;

  // Usage of one flavor: what is charged to each node.
  using Usage = std::vector<Amounts>;
  Usage EmptyUsage() const { return Usage(nodes_.size()); }
  // What a job of `leaf` can use now under the quotas; negative where they are exceeded.
  Amounts Available(FlavorIndex flavor, NodeIndex leaf, const Usage& usage) const;
  // Charges a leaf and, beyond its unlent quota, its ancestors. O(depth).
  void Charge(FlavorIndex flavor, NodeIndex leaf, const Amounts& amounts, Usage* usage) const;
  void Discharge(FlavorIndex flavor, NodeIndex leaf, const Amounts& amounts, Usage* usage) const;

 private:
  void AddNodes(const Policy& policy);
  void AddCells();
  void AddFlavors();

  std::vector<Node> nodes_;  // parents before children
  bool drains_ = false;
  std::vector<std::string> flavor_names_;
  std::vector<std::vector<Cell>> cells_;                           // [flavor][node]
  std::vector<std::vector<std::array<bool, kResources>>> limits_;  // [flavor][root]
  std::vector<std::vector<Amounts>> wholes_;                       // [flavor][root]
  std::unordered_map<std::string, NodeIndex> by_name_;
};

}  // namespace shoal::queue
