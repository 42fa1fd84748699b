// Records and the audit log over a database (records.h). Used by sql_store.cc.
#pragma once

#include <functional>
#include <string>

#include "controller/store/lease.h"
#include "controller/store/records.h"
#include "controller/store/sql/sql_database.h"

namespace shoal::controller {

// Thread-safe, as is the next. `database` must outlive it.
class SqlRecords final : public Records {
 public:
  // `fence`: that of the store at the time of a call.
  SqlRecords(SqlDatabase* database, std::function<Fence()> fence)
      : database_(database), fence_(std::move(fence)) {}
  Result<Record> Get(std::string_view kind, std::string_view key) override;
  Result<RecordPage> List(std::string_view kind, std::string_view prefix, std::string_view after,
                          int limit) override;
  Result<int64_t> Apply(std::span<const RecordChange> changes, WallTime now) override;
  Result<int64_t> DeleteOlder(std::string_view kind, WallTime before) override;

 private:
  SqlDatabase* const database_;
  const std::function<Fence()> fence_;
};

class SqlAudit final : public Audit {
 public:
  SqlAudit(SqlDatabase* database, std::string store_id)
      : database_(database), store_id_(std::move(store_id)) {}
  Status Append(std::span<const AuditEntry> entries) override;
  Result<AuditPage> Read(const AuditFilter& filter, std::string_view after, int limit) override;
  Result<int64_t> Trim(WallTime before) override;

 private:
  SqlDatabase* const database_;
  const std::string store_id_;
};

// InvalidArgument unless 1 to 1000.
Status CheckPageLimit(int limit);
// Raises the counter `name` by one and returns its value. Values are never used twice.
Result<int64_t> NextCount(SqlConnection& db, std::string_view name);

}  // namespace shoal::controller
