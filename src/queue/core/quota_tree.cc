#include "queue/core/quota_tree.h"

#include <algorithm>

namespace shoal::queue {
namespace {

size_t At(int32_t index) { return static_cast<size_t>(index); }

}  // namespace

QuotaTree::QuotaTree(const Policy& policy) {
  for (const Flavor& flavor : policy.flavors) flavor_names_.push_back(flavor.name);
  AddNodes(policy);
  AddCells();
  AddFlavors();
}

// Parents before children, otherwise in the file's order.
void QuotaTree::AddNodes(const Policy& policy) {
  std::vector<bool> added(policy.queues.size());
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < policy.queues.size(); ++i) {
      const QueueSpec& spec = policy.queues[i];
      if (added[i] || (!spec.parent.empty() && !by_name_.contains(spec.parent))) continue;
      added[i] = more = true;
      Node node;
      node.spec = spec;
      const auto index = static_cast<NodeIndex>(nodes_.size());
      node.root = index;
      if (!spec.parent.empty()) {
        node.parent = by_name_.at(spec.parent);
        Node& parent = nodes_[At(node.parent)];
        parent.leaf = false;
        node.root = parent.root;
        node.path = parent.path;
        node.limited = parent.limited;
        node.spec.mode = std::max(node.spec.mode, parent.spec.mode);
      }
      drains_ |= node.spec.mode == QueueMode::kDrain;
      node.path.push_back(index);
      if (spec.per_user.any() || spec.per_team.any()) node.limited.push_back(index);
      by_name_[spec.name] = index;
      nodes_.push_back(std::move(node));
    }
  }
}

void QuotaTree::AddCells() {
  cells_.assign(flavor_names_.size(), std::vector<Cell>(nodes_.size()));
  limits_.assign(flavor_names_.size(), std::vector<std::array<bool, kResources>>(nodes_.size()));
  wholes_.assign(flavor_names_.size(), std::vector<Amounts>(nodes_.size()));
  for (size_t f = 0; f < flavor_names_.size(); ++f) {
    for (size_t n = nodes_.size(); n-- > 0;) {  // children first
      const Node& node = nodes_[n];
      Cell& cell = cells_[f][n];
      const auto quota = node.spec.quota.find(flavor_names_[f]);
      cell.borrow = kNoLimit;
      for (size_t r = 0; r < kResources; ++r) {
        int64_t lend = kUnlimited;
        if (quota != node.spec.quota.end()) {
          const Quota& given = quota->second[r];
          if (given.nominal || given.borrow || given.lend) limits_[f][At(node.root)][r] = true;
          cell.own[r] = given.nominal.value_or(0);
          cell.subtree[r] += cell.own[r];
          wholes_[f][At(node.root)][r] += cell.own[r];
          cell.borrow[r] = given.borrow.value_or(kUnlimited);
          lend = given.lend.value_or(kUnlimited);
        }
        cell.local[r] = std::max<int64_t>(0, cell.subtree[r] - lend);
        if (node.parent != kNoIndex)
          cells_[f][At(node.parent)].subtree[r] += cell.subtree[r] - cell.local[r];
      }
    }
  }
}

// A queue's own list, or that of its nearest ancestor, or every flavor that has a quota in the
// tree, or every flavor.
void QuotaTree::AddFlavors() {
  for (Node& node : nodes_) {
    for (size_t i = node.path.size(); i-- > 0 && node.flavors.empty();) {
      for (const std::string& name : nodes_[At(node.path[i])].spec.flavors)
        node.flavors.push_back(FindFlavor(name));
    }
    if (!node.flavors.empty()) continue;
    for (size_t f = 0; f < flavor_names_.size(); ++f) {
      const auto& limits = limits_[f][At(node.root)];
      if (limits[0] || limits[1] || limits[2]) node.flavors.push_back(static_cast<FlavorIndex>(f));
    }
    if (!node.flavors.empty()) continue;
    for (size_t f = 0; f < flavor_names_.size(); ++f)
      node.flavors.push_back(static_cast<FlavorIndex>(f));
  }
}

NodeIndex QuotaTree::FindNode(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kNoIndex : found->second;
}

FlavorIndex QuotaTree::FindFlavor(const std::string& name) const {
  const auto found = std::find(flavor_names_.begin(), flavor_names_.end(), name);
  return found == flavor_names_.end() ? kNoIndex
                                      : static_cast<FlavorIndex>(found - flavor_names_.begin());
}

bool QuotaTree::Limits(FlavorIndex flavor, NodeIndex root, size_t resource) const {
  return limits_[At(flavor)][At(root)][resource];
}

Amounts QuotaTree::Most(FlavorIndex flavor, NodeIndex leaf) const {
  return Available(flavor, leaf, EmptyUsage());
}

Amounts QuotaTree::Available(FlavorIndex flavor, NodeIndex leaf, const Usage& usage) const {
  const std::vector<Cell>& cells = cells_[At(flavor)];
  const std::vector<NodeIndex>& path = nodes_[At(leaf)].path;
  const auto& limits = limits_[At(flavor)][At(path[0])];
  Amounts available = cells[At(path[0])].subtree - usage[At(path[0])];
  for (size_t i = 1; i < path.size(); ++i) {
    const Cell& cell = cells[At(path[i])];
    const Amounts& used = usage[At(path[i])];
    for (size_t r = 0; r < kResources; ++r) {
      const int64_t lent = cell.subtree[r] - cell.local[r];
      const int64_t borrowed = std::max<int64_t>(0, used[r] - cell.local[r]);
      const int64_t most = lent - borrowed + cell.borrow[r];
      available[r] = std::max<int64_t>(0, cell.local[r] - used[r]) + std::min(most, available[r]);
    }
  }
  for (size_t r = 0; r < kResources; ++r) {
    if (!limits[r]) available[r] = kUnlimited;
  }
  return available;
}

void QuotaTree::Charge(FlavorIndex flavor, NodeIndex leaf, const Amounts& amounts,
                       Usage* usage) const {
  const std::vector<Cell>& cells = cells_[At(flavor)];
  Amounts rest = amounts;
  for (NodeIndex n = leaf; n != kNoIndex; n = nodes_[At(n)].parent) {
    Amounts& used = (*usage)[At(n)];
    for (size_t r = 0; r < kResources; ++r) {
      const int64_t local = std::max<int64_t>(0, cells[At(n)].local[r] - used[r]);
      used[r] += rest[r];
      rest[r] = std::max<int64_t>(0, rest[r] - local);
    }
  }
}

void QuotaTree::Discharge(FlavorIndex flavor, NodeIndex leaf, const Amounts& amounts,
                          Usage* usage) const {
  const std::vector<Cell>& cells = cells_[At(flavor)];
  Amounts rest = amounts;
  for (NodeIndex n = leaf; n != kNoIndex; n = nodes_[At(n)].parent) {
    Amounts& used = (*usage)[At(n)];
    for (size_t r = 0; r < kResources; ++r) {
      const int64_t charged = std::max<int64_t>(0, used[r] - cells[At(n)].local[r]);
      used[r] -= rest[r];
      rest[r] = std::min(rest[r], charged);
    }
  }
}

}  // namespace shoal::queue
