// Leases in a database (lease.h). Used by sql_store.cc.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "controller/store/lease.h"
#include "controller/store/sql/sql_database.h"

namespace shoal::controller {

// Thread-safe. `database` and `clock` must outlive it.
class SqlLeases {
 public:
  SqlLeases(SqlDatabase* database, const Clock* clock) : database_(database), clock_(clock) {}

  // As in Store.
  Result<Lease> Acquire(const std::string& name, const std::string& holder, Duration ttl);
  Result<Lease> Renew(const Fence& fence, Duration ttl);
  Status Release(const Fence& fence);

  // Within a transaction that writes: Aborted if the fence's epoch is old.
  static Status Check(SqlConnection& db, const Fence& fence);

 private:
  Result<int64_t> NowMicros(SqlConnection& db) const;

  SqlDatabase* const database_;
  const Clock* const clock_;
};

}  // namespace shoal::controller
