#include "queue/core/ledger.h"

#include <algorithm>
#include <cmath>

namespace shoal::queue {
namespace {

size_t At(int32_t index) { return static_cast<size_t>(index); }

}  // namespace

Ledger::Ledger(const QuotaTree* tree, Millis half_life, Millis period)
    : tree_(tree), period_(std::max(period, Millis(1))) {
  const size_t flavors = tree->flavor_count();
  const size_t nodes = tree->nodes().size();
  if (half_life > Millis(0)) {
    decay_ =
        std::exp2(-static_cast<double>(period_.count()) / static_cast<double>(half_life.count()));
  }
  usage_.assign(flavors, tree->EmptyUsage());
  real_.assign(flavors, tree->EmptyUsage());
  held_.assign(flavors, std::vector<Amounts>(nodes));
  past_.assign(flavors, std::vector<Fractions>(nodes, Fractions{}));
  scale_.assign(flavors, std::vector<Fractions>(nodes, Fractions{}));
  dominant_.assign(flavors, std::vector<double>(nodes));
  share_.assign(nodes, 0);
  borrows_.assign(nodes, 0);
  borrowers_.assign(nodes, 0);
  for (size_t f = 0; f < flavors; ++f) SetCapacity(static_cast<FlavorIndex>(f), kNoLimit);
}

void Ledger::Charge(FlavorIndex flavor, NodeIndex leaf, const Amounts& amounts) {
  tree_->Charge(flavor, leaf, amounts, &usage_[At(flavor)]);
  for (NodeIndex n = leaf; n != kNoIndex; n = tree_->node(n).parent) {
    held_[At(flavor)][At(n)] += amounts;
    Refresh(flavor, n);
  }
}

void Ledger::Discharge(FlavorIndex flavor, NodeIndex leaf, const Amounts& amounts) {
  tree_->Discharge(flavor, leaf, amounts, &usage_[At(flavor)]);
  for (NodeIndex n = leaf; n != kNoIndex; n = tree_->node(n).parent) {
    held_[At(flavor)][At(n)] -= amounts;
    Refresh(flavor, n);
  }
}

void Ledger::ChargeReal(FlavorIndex flavor, NodeIndex leaf, const Amounts& amounts) {
  tree_->Charge(flavor, leaf, amounts, &real_[At(flavor)]);
}

void Ledger::DischargeReal(FlavorIndex flavor, NodeIndex leaf, const Amounts& amounts) {
  tree_->Discharge(flavor, leaf, amounts, &real_[At(flavor)]);
}

bool Ledger::Before(NodeIndex a, NodeIndex b, bool equal) const {
  const std::vector<NodeIndex>& first = tree_->node(a).path;
  const std::vector<NodeIndex>& second = tree_->node(b).path;
  const size_t depth = std::min(first.size(), second.size());
  size_t level = 0;
  while (level < depth && first[level] == second[level]) ++level;
  if (level == depth) return equal;
  const NodeIndex x = first[level];
  const NodeIndex y = second[level];
  if (borrows(x) != borrows(y)) return borrows(y);
  if (share(x) != share(y)) return share(x) < share(y);
  return equal;
}

void Ledger::SetCapacity(FlavorIndex flavor, const Amounts& capacity) {
  for (size_t n = 0; n < tree_->nodes().size(); ++n) {
    const auto node = static_cast<NodeIndex>(n);
    const NodeIndex root = tree_->node(node).root;
    for (size_t r = 0; r < kResources; ++r) {
      const int64_t whole =
          tree_->Limits(flavor, root, r) ? tree_->Whole(flavor, root)[r] : capacity[r];
      scale_[At(flavor)][n][r] =
          whole > 0 && whole < kUnlimited ? 1.0 / static_cast<double>(whole) : 0;
    }
    Refresh(flavor, node);
  }
}

double Ledger::Dominant(FlavorIndex flavor, NodeIndex node, const Amounts& amounts) const {
  double most = 0;
  for (size_t r = 0; r < kResources; ++r) {
    most = std::max(most, static_cast<double>(amounts[r]) * scale_[At(flavor)][At(node)][r]);
  }
  return most;
}

void Ledger::Refresh(FlavorIndex flavor, NodeIndex node) {
  const Amounts& held = held_[At(flavor)][At(node)];
  const Fractions& past = past_[At(flavor)][At(node)];
  const Fractions& scale = scale_[At(flavor)][At(node)];
  const QuotaTree::Cell& cell = tree_->cell(flavor, node);
  const Amounts& used = usage_[At(flavor)][At(node)];
  double most = 0;
  bool borrows = false;
  for (size_t r = 0; r < kResources; ++r) {
    most = std::max(most, (static_cast<double>(held[r]) + past[r]) * scale[r]);
    borrows |= used[r] > cell.subtree[r] && tree_->Limits(flavor, tree_->node(node).root, r);
  }
  dominant_[At(flavor)][At(node)] = most;
  const uint32_t bit = 1U << flavor;
  uint32_t& bits = borrows_[At(node)];
  const bool before = bits != 0;
  bits = borrows ? bits | bit : bits & ~bit;
  const QuotaTree::Node& place = tree_->node(node);
  if (place.leaf) borrowers_[At(place.root)] += (bits != 0 ? 1 : 0) - (before ? 1 : 0);
  for (const std::vector<double>& others : dominant_) most = std::max(most, others[At(node)]);
  share_[At(node)] = most / tree_->node(node).spec.weight;
}

void Ledger::Advance(Millis now) {
  if (decay_ <= 0) return;
  if (sampled_ < Millis(0)) sampled_ = now;
  const int64_t periods = (now - sampled_) / period_;
  if (periods <= 0) return;
  sampled_ += periods * period_;
  const double kept = std::pow(decay_, static_cast<double>(periods));
  for (size_t f = 0; f < past_.size(); ++f) {
    for (size_t n = 0; n < past_[f].size(); ++n) {
      for (size_t r = 0; r < kResources; ++r) {
        const auto held = static_cast<double>(held_[f][n][r]);
        past_[f][n][r] = held + (past_[f][n][r] - held) * kept;
      }
      Refresh(static_cast<FlavorIndex>(f), static_cast<NodeIndex>(n));
    }
  }
}

void Ledger::TakeHistory(const Ledger& other) {
  sampled_ = other.sampled_;
  for (size_t f = 0; f < past_.size(); ++f) {
    const auto flavor = static_cast<FlavorIndex>(f);
    const FlavorIndex from = other.tree_->FindFlavor(tree_->flavor_name(flavor));
    if (from == kNoIndex) continue;
    for (size_t n = 0; n < past_[f].size(); ++n) {
      const auto node = static_cast<NodeIndex>(n);
      const NodeIndex source = other.tree_->FindNode(tree_->node(node).spec.name);
      if (source == kNoIndex) continue;
      past_[f][n] = other.past_[At(from)][At(source)];
      Refresh(flavor, node);
    }
  }
}

}  // namespace shoal::queue
