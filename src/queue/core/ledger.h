// What is charged to each queue, and from that its share and whether it borrows: the order in which
// queues are served.
//
// The share of a node is its dominant share (the largest fraction of any resource of any flavor of
// its tree) of what it holds now plus its decaying past usage, divided by its weight.
#pragma once

#include <array>
#include <vector>

#include "queue/core/amounts.h"
#include "queue/core/quota_tree.h"

namespace shoal::queue {

// Copyable. `tree` must outlive it. Not thread-safe.
class Ledger {
 public:
  Ledger(const QuotaTree* tree, Millis half_life, Millis period);

  // Charges a leaf and its ancestors. A negative amount is not allowed; see Discharge.
  void Charge(FlavorIndex flavor, NodeIndex leaf, const Amounts& amounts);
  void Discharge(FlavorIndex flavor, NodeIndex leaf, const Amounts& amounts);
  const QuotaTree::Usage& usage(FlavorIndex flavor) const {
    return usage_[static_cast<size_t>(flavor)];
  }
  // The same of what jobs hold while victims stop: JobState::real in place of JobState::charge.
  void ChargeReal(FlavorIndex flavor, NodeIndex leaf, const Amounts& amounts);
  void DischargeReal(FlavorIndex flavor, NodeIndex leaf, const Amounts& amounts);
  const QuotaTree::Usage& real(FlavorIndex flavor) const {
    return real_[static_cast<size_t>(flavor)];
  }
  // All that the jobs below a node hold, whether from its own quota or borrowed.
  const Amounts& held(FlavorIndex flavor, NodeIndex node) const {
    return held_[static_cast<size_t>(flavor)][static_cast<size_t>(node)];
  }
  double share(NodeIndex node) const { return share_[static_cast<size_t>(node)]; }
  bool borrows(NodeIndex node) const { return borrows_[static_cast<size_t>(node)] != 0; }
  // Number of queues of the tree of `root` that take jobs and borrow.
  int32_t borrowers(NodeIndex root) const { return borrowers_[static_cast<size_t>(root)]; }
  // True if leaf `a` is served before `b`: at the level where their paths part, the one whose node
  // does not borrow, then the one with the smaller share. `equal` is the answer for equal ones.
  bool Before(NodeIndex a, NodeIndex b, bool equal) const;

  // Capacity of a flavor, which is the whole of resources without quota.
  void SetCapacity(FlavorIndex flavor, const Amounts& capacity);
  // The dominant fraction of its tree that the amounts are.
  double Dominant(FlavorIndex flavor, NodeIndex node, const Amounts& amounts) const;
  // Samples the usage of the periods that have ended since the last call. Call it before any change
  // at a later time. O(nodes · flavors) once a period.
  void Advance(Millis now);
  // Replaces the past usage by that of another tree, by names of queues and flavors.
  void TakeHistory(const Ledger& other);

 private:
  using Fractions = std::array<double, kResources>;

  void Refresh(FlavorIndex flavor, NodeIndex node);

  const QuotaTree* tree_;
  double decay_ = 0;  // of one period; 0: no history
  Millis period_;
  Millis sampled_{-1};
  std::vector<QuotaTree::Usage> usage_;        // [flavor][node]
  std::vector<QuotaTree::Usage> real_;         // [flavor][node]
  std::vector<std::vector<Amounts>> held_;     // [flavor][node]
  std::vector<std::vector<Fractions>> past_;   // [flavor][node]
  std::vector<std::vector<Fractions>> scale_;  // [flavor][root]: 1 / whole
  std::vector<std::vector<double>> dominant_;  // [flavor][node]
  std::vector<double> share_;
  std::vector<uint32_t> borrows_;   // bits of flavors
  std::vector<int32_t> borrowers_;  // by root
};

}  // namespace shoal::queue
