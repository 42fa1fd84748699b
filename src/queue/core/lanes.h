// Lanes: the waiting jobs of one queue that share the limits of a user and a team. A queue without
// such limits has one lane. The accounts count what users and teams hold.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "queue/core/job.h"
#include "queue/core/quota_tree.h"
#include "queue/core/waiting_lines.h"

namespace shoal::queue {

// What one user or team holds below one node.
struct Account {
  NodeIndex node = kNoIndex;
  bool team = false;
  std::string holder;
  HolderLimit limit;
  int64_t jobs = 0;
  Amounts held;

  // What it may still take; nothing at all if its number of jobs is reached.
  Amounts Left() const;
  bool TakesJob() const { return !limit.jobs || jobs < *limit.jobs; }
};

struct Lane {
  NodeIndex leaf = kNoIndex;
  WaitingLines::Line line = kNoIndex;
  std::vector<int32_t> accounts;
};

// Copyable. Not thread-safe.
class Lanes {
 public:
  // The lane of a job in a leaf, made if it is new.
  int32_t Find(const QuotaTree& tree, NodeIndex leaf, const std::string& user,
               const std::string& team);
  const Lane& lane(int32_t index) const { return lanes_[static_cast<size_t>(index)]; }
  const std::vector<int32_t>& OfLeaf(NodeIndex leaf) const;
  const Account& account(int32_t index) const { return accounts_[static_cast<size_t>(index)]; }
  // What a job of the lane may take now; false if no further job may start.
  bool Headroom(int32_t lane, Amounts* amounts) const;
  void CountJob(int32_t lane, int64_t jobs);
  void Charge(int32_t lane, const Amounts& amounts);
  void Discharge(int32_t lane, const Amounts& amounts);

  WaitingLines& lines() { return lines_; }
  const WaitingLines& lines() const { return lines_; }
  // Number of waiting jobs of a leaf.
  size_t Waiting(NodeIndex leaf) const;

 private:
  int32_t FindAccount(const QuotaTree& tree, NodeIndex node, bool team, const std::string& holder);

  std::vector<Lane> lanes_;
  std::vector<Account> accounts_;
  std::vector<std::vector<int32_t>> of_leaf_;
  std::map<std::pair<NodeIndex, std::pair<std::string, std::string>>, int32_t> by_holder_;
  std::map<std::pair<std::pair<NodeIndex, bool>, std::string>, int32_t> account_of_;
  WaitingLines lines_;
};

}  // namespace shoal::queue
