#include "controller/store/sql/group_commit.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/mutex.h"

namespace shoal::controller {
namespace {

constexpr std::chrono::milliseconds kLongestPause{2};

}  // namespace

Status GroupCommit::Do(Durability durability, const SqlDatabase::Change& change) {
  PendingChange mine{&change, durability, {}, false, false};
  MutexLock lock(mu_);
  waiting_.push_back(&mine);
  arrived_.notify_one();
  while (!mine.done) {
    if (busy_) {
      finished_.wait(lock);
      continue;
    }
    busy_ = true;
    // The callers of the last group come again, one after the other; a commit without most of them
    // would make them wait for two.
    if (waiting_.size() < last_size_)
      arrived_.wait_for(lock, last_duration_ / 8,
                        [this]() REQUIRES(mu_) { return waiting_.size() >= last_size_; });
    const std::vector<PendingChange*> group = std::exchange(waiting_, {});
    lock.unlock();
    const TimePoint begin = RealClock::Get()->Now();
    commit_(group);
    const Duration duration = RealClock::Get()->Now() - begin;
    lock.lock();
    last_size_ = group.size();
    last_duration_ = std::min<Duration>(duration, kLongestPause * 8);
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
