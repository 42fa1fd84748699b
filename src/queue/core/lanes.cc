#include "queue/core/lanes.h"

namespace shoal::queue {

Amounts Account::Left() const {
  Amounts left = kNoLimit;
  for (size_t r = 0; r < kResources; ++r) {
    if (limit.amounts[r]) left[r] = *limit.amounts[r] - held[r];
  }
  return left;
}

int32_t Lanes::Find(const QuotaTree& tree, NodeIndex leaf, const std::string& user,
                    const std::string& team) {
  if (of_leaf_.size() <= static_cast<size_t>(leaf)) of_leaf_.resize(tree.nodes().size());
  std::vector<int32_t>& lanes = of_leaf_[static_cast<size_t>(leaf)];
  const bool limited = !tree.node(leaf).limited.empty();
  if (!limited && !lanes.empty()) return lanes.front();
  const auto key =
      std::pair(leaf, limited ? std::pair(user, team) : std::pair(std::string(), std::string()));
  if (const auto found = by_holder_.find(key); found != by_holder_.end()) return found->second;
  Lane lane;
  lane.leaf = leaf;
  lane.line = lines_.AddLine();
  for (const NodeIndex node : tree.node(leaf).limited) {
    const QueueSpec& spec = tree.node(node).spec;
    if (spec.per_user.any()) lane.accounts.push_back(FindAccount(tree, node, false, user));
    if (spec.per_team.any() && !team.empty())
      lane.accounts.push_back(FindAccount(tree, node, true, team));
  }
  lanes_.push_back(std::move(lane));
  const auto index = static_cast<int32_t>(lanes_.size() - 1);
  by_holder_[key] = index;
  lanes.push_back(index);
  return index;
}

int32_t Lanes::FindAccount(const QuotaTree& tree, NodeIndex node, bool team,
                           const std::string& holder) {
  const auto key = std::pair(std::pair(node, team), holder);
  if (const auto found = account_of_.find(key); found != account_of_.end()) return found->second;
  Account account;
  account.node = node;
  account.team = team;
  account.holder = holder;
  account.limit = team ? tree.node(node).spec.per_team : tree.node(node).spec.per_user;
  accounts_.push_back(std::move(account));
  return account_of_[key] = static_cast<int32_t>(accounts_.size() - 1);
}

const std::vector<int32_t>& Lanes::OfLeaf(NodeIndex leaf) const {
  static const std::vector<int32_t> kEmpty;
  return static_cast<size_t>(leaf) < of_leaf_.size() ? of_leaf_[static_cast<size_t>(leaf)] : kEmpty;
}

bool Lanes::Headroom(int32_t index, Amounts* amounts) const {
  *amounts = kNoLimit;
  for (const int32_t account : lane(index).accounts) {
    if (!this->account(account).TakesJob()) return false;
    *amounts = Min(*amounts, this->account(account).Left());
  }
  return true;
}

void Lanes::CountJob(int32_t index, int64_t jobs) {
  for (const int32_t account : lane(index).accounts)
    accounts_[static_cast<size_t>(account)].jobs += jobs;
}

void Lanes::Charge(int32_t index, const Amounts& amounts) {
  for (const int32_t account : lane(index).accounts)
    accounts_[static_cast<size_t>(account)].held += amounts;
}

void Lanes::Discharge(int32_t index, const Amounts& amounts) {
  for (const int32_t account : lane(index).accounts)
    accounts_[static_cast<size_t>(account)].held -= amounts;
}

size_t Lanes::Waiting(NodeIndex leaf) const {
  size_t count = 0;
  for (const int32_t index : OfLeaf(leaf)) count += lines_.size(lane(index).line);
  return count;
}

}  // namespace shoal::queue
