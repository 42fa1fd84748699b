#include "controller/store/sql/sql_leases.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "base/utf8.h"
#include "controller/store/sql/sql_records.h"

namespace shoal::controller {
namespace {

using std::chrono::microseconds;

constexpr size_t kMaxName = 200;

struct LeaseRow {
  std::string holder;
  int64_t epoch = 0;
  int64_t expires = 0;  // µs since the epoch, by the store's clock; 0: released
};

Result<std::optional<LeaseRow>> ReadLease(SqlConnection& db, const std::string& name) {
  TRY_ASSIGN(Statement select,
             db.Prepare("SELECT holder, epoch, expires FROM leases WHERE name = ?1"));
  TRY_ASSIGN(const bool found, select.Bind(1, name).Step());
  if (!found) return std::optional<LeaseRow>();
  return std::optional<LeaseRow>({select.Text(0), select.Int(1), select.Int(2)});
}

Status WriteLease(SqlConnection& db, const std::string& name, const LeaseRow& row) {
  TRY_ASSIGN(Statement put,
             db.Prepare("INSERT INTO leases (name, holder, epoch, expires) VALUES (?1, ?2, ?3, ?4) "
                        "ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, "
                        "epoch = excluded.epoch, expires = excluded.expires"));
  return put.Bind(1, name).Bind(2, row.holder).Bind(3, row.epoch).Bind(4, row.expires).Run();
}

Status OldEpoch(const Fence& fence, const std::optional<LeaseRow>& row) {
  if (!row) return Aborted(fmt::format("the lease {} does not exist; take it first", fence.lease));
  return Aborted(
      fmt::format("the lease {} has epoch {} and is {}'s, got epoch {}: another took "
                  "over, and nothing was changed",
                  fence.lease, row->epoch, row->holder, fence.epoch));
}

Status CheckArguments(const std::string& name, const std::string& holder, Duration ttl) {
  for (const std::string& text : {name, holder}) {
    if (text.empty() || text.size() > kMaxName || !IsUtf8(text))
      return InvalidArgument("a lease's name or holder is not 1 to 200 bytes of UTF-8");
  }
  if (ttl < std::chrono::milliseconds(1) || ttl > std::chrono::hours(24))
    return InvalidArgument("a lease's duration is not between 1 ms and 24 h");
  return Status::Ok();
}

int64_t Micros(Duration ttl) { return std::chrono::duration_cast<microseconds>(ttl).count(); }

}  // namespace

Result<int64_t> SqlLeases::NowMicros(SqlConnection& db) const {
  const char* const sql = database_->dialect().now;
  if (sql == nullptr) return clock_->Wall().time_since_epoch().count();
  TRY_ASSIGN(Statement now, db.Prepare(sql));
  TRY_ASSIGN(const bool row, now.Step());
  return row ? Result<int64_t>(now.Int(0)) : Internal("the database has no clock");
}

Result<Lease> SqlLeases::Acquire(const std::string& name, const std::string& holder, Duration ttl) {
  TRY(CheckArguments(name, holder, ttl));
  Lease lease;
  const Status done = database_->Write(Durability::kSynced, [&](SqlConnection& db) -> Result<bool> {
    TRY_ASSIGN(const int64_t now, NowMicros(db));
    TRY_ASSIGN(const std::optional<LeaseRow> row, ReadLease(db, name));
    if (row && row->holder != holder && row->expires > now) {
      lease = {false, name, row->holder, row->epoch, microseconds(row->expires - now)};
      return false;
    }
    TRY_ASSIGN(const int64_t epoch, NextCount(db, "lease_epoch"));
    const char* const first = database_->dialect().on_lease;
    if (epoch == 1 && first != nullptr) TRY(db.Execute(first));
    TRY(WriteLease(db, name, {holder, epoch, now + Micros(ttl)}));
    lease = {true, name, holder, epoch, ttl};
    return true;
  });
  TRY(done);
  return lease;
}

Result<Lease> SqlLeases::Renew(const Fence& fence, Duration ttl) {
  TRY(CheckArguments(fence.lease, "holder", ttl));
  Lease lease;
  const Status done =
      database_->Write(Durability::kWritten, [&](SqlConnection& db) -> Result<bool> {
        TRY_ASSIGN(const int64_t now, NowMicros(db));
        TRY_ASSIGN(const std::optional<LeaseRow> row, ReadLease(db, fence.lease));
        if (!row || row->epoch != fence.epoch) return OldEpoch(fence, row);
        TRY(WriteLease(db, fence.lease, {row->holder, row->epoch, now + Micros(ttl)}));
        lease = {true, fence.lease, row->holder, row->epoch, ttl};
        return true;
      });
  TRY(done);
  return lease;
}

Status SqlLeases::Release(const Fence& fence) {
  return database_->Write(Durability::kSynced, [&](SqlConnection& db) -> Result<bool> {
    TRY_ASSIGN(const std::optional<LeaseRow> row, ReadLease(db, fence.lease));
    if (!row || row->epoch != fence.epoch) return false;
    // With a new epoch, so that its former holder's late writes are refused.
    TRY_ASSIGN(const int64_t epoch, NextCount(db, "lease_epoch"));
    TRY(WriteLease(db, fence.lease, {row->holder, epoch, 0}));
    return true;
  });
}

Status SqlLeases::Check(SqlConnection& db, const Fence& fence) {
  if (fence.lease.empty()) return Status::Ok();
  TRY_ASSIGN(const std::optional<LeaseRow> row, ReadLease(db, fence.lease));
  return row && row->epoch == fence.epoch ? Status::Ok() : OldEpoch(fence, row);
}

}  // namespace shoal::controller
