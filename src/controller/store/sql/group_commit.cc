#include "controller/store/sql/group_commit.h"

#include <utility>

namespace shoal::controller {

Status GroupCommit::Do(Durability durability, const SqlDatabase::Change& change) {
  PendingChange mine{&change, durability, {}, false, false};
  std::unique_lock lock(mu_);
  waiting_.push_back(&mine);
  while (!mine.done) {
    if (busy_) {
      finished_.wait(lock);
      continue;
    }
    busy_ = true;
    const std::vector<PendingChange*> group = std::exchange(waiting_, {});
    lock.unlock();
    commit_(group);
    lock.lock();
    for (PendingChange* one : group) one->done = true;
    busy_ = false;
    finished_.notify_all();
  }
  return mine.status;
}

GroupOutcome ExecuteGroup(SqlConnection& connection, std::span<PendingChange* const> group,
                          const std::function<bool()>& in_transaction) {
  GroupOutcome outcome;
  const bool alone = group.size() == 1;
  for (PendingChange* one : group) {
    one->status = Status::Ok();
    one->changed = false;
    if (!alone) one->status = connection.Execute("SAVEPOINT one");
    if (one->status.ok()) {
      const Result<bool> result = (*one->change)(connection);
      one->status = result.status();
      one->changed = result.ok() && *result;
    }
    // A database ends the transaction after some errors, such as a full disk.
    if (!one->status.ok() && !in_transaction()) {
      outcome.lost = true;
      return outcome;
    }
    outcome.changed = outcome.changed || one->changed;
    if (alone) continue;
    const Status ended =
        connection.Execute(one->changed ? "RELEASE SAVEPOINT one"
                                        : "ROLLBACK TO SAVEPOINT one; RELEASE SAVEPOINT one");
    if (!ended.ok() || !in_transaction()) {
      outcome.lost = true;
      return outcome;
    }
  }
  return outcome;
}

}  // namespace shoal::controller
