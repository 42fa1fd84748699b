#include "queue/core/arenas.h"

#include <algorithm>

namespace shoal::queue {
namespace {

size_t At(int32_t index) { return static_cast<size_t>(index); }

// True if the trees together may use more of the flavor than there is.
bool CapacityBinds(const QuotaTree& tree, FlavorIndex flavor, const std::vector<NodeIndex>& roots,
                   const Amounts& capacity) {
  for (size_t r = 0; r < kResources; ++r) {
    if (capacity[r] >= kUnlimited) continue;
    int64_t sum = 0;
    for (const NodeIndex root : roots) {
      if (!tree.Limits(flavor, root, r)) return true;
      sum += tree.Whole(flavor, root)[r];
    }
    if (sum > capacity[r]) return true;
  }
  return false;
}

}  // namespace

Arenas::Arenas(const QuotaTree& tree, std::vector<FlavorCapacity> capacities)
    : capacities_(std::move(capacities)) {
  capacities_.resize(tree.flavor_count());
  for (FlavorCapacity& capacity : capacities_) capacity.held = capacity.real = {};
  arena_of_.assign(tree.flavor_count(), std::vector<int32_t>(tree.nodes().size(), kNoIndex));
  for (size_t f = 0; f < tree.flavor_count(); ++f) {
    const auto flavor = static_cast<FlavorIndex>(f);
    std::vector<bool> uses(tree.nodes().size());
    std::vector<NodeIndex> roots;
    for (const QuotaTree::Node& node : tree.nodes()) {
      if (std::find(node.flavors.begin(), node.flavors.end(), flavor) == node.flavors.end())
        continue;
      if (!uses[At(node.root)]) roots.push_back(node.root);
      uses[At(node.root)] = true;
    }
    const bool together = CapacityBinds(tree, flavor, roots, capacities_[f].total);
    std::vector<int32_t> of_root(tree.nodes().size(), kNoIndex);
    for (const NodeIndex root : roots) {
      if (!together || root == roots.front()) {
        arenas_.emplace_back();
        arenas_.back().flavor = flavor;
      }
      arenas_.back().roots.push_back(root);
      of_root[At(root)] = static_cast<int32_t>(arenas_.size() - 1);
    }
    for (size_t n = 0; n < tree.nodes().size(); ++n)
      arena_of_[f][n] = of_root[At(tree.nodes()[n].root)];
  }
}

}  // namespace shoal::queue
