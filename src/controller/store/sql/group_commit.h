// Lets threads that write at the same time share one transaction, and so one sync of the disk or
// one round trip to the database. Used by both databases (sql_database.h).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "controller/store/sql/sql_database.h"

namespace shoal::controller {

// A caller's part of a transaction.
struct PendingChange {
  const SqlDatabase::Change* change = nullptr;
  Durability durability = Durability::kSynced;
  Status status;
  bool changed = false;
  bool done = false;
};

// Thread-safe.
class GroupCommit {
 public:
  // Executes the changes as one transaction and sets `status` of each. Calls never overlap.
  using Commit = std::function<void(std::span<PendingChange* const>)>;
  explicit GroupCommit(Commit commit) : commit_(std::move(commit)) {}

  // Returns when the change is committed or refused. The first caller executes its change at once;
  // those that arrive meanwhile are executed together by one of them, which waits up to an eighth
  // of the last commit for as many callers as that one had.
  Status Do(Durability durability, const SqlDatabase::Change& change);

 private:
  const Commit commit_;
  Mutex mu_;
  CondVar finished_;
  CondVar arrived_;
  std::vector<PendingChange*> waiting_ GUARDED_BY(mu_);  // in the order of arrival
  bool busy_ = false;                                    // a caller is in commit_; guarded by mu_
  size_t last_size_ = 0;  // of the last group; likewise, as is the next
  Duration last_duration_{};
};

struct GroupOutcome {
  bool changed = false;  // there is something to commit
  bool lost = false;     // the transaction is gone: none of the changes happened
};
// Executes the changes, each in a savepoint if there are several, within the transaction that
// `connection` is in, and sets their status. `in_transaction`: whether it still is.
GroupOutcome ExecuteGroup(SqlConnection& connection, std::span<PendingChange* const> group,
                          const std::function<bool()>& in_transaction);

}  // namespace shoal::controller
