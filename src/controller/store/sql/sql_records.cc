#include "controller/store/sql/sql_records.h"

#include <fmt/format.h>

#include <chrono>
#include <variant>

#include "base/utf8.h"
#include "controller/store/cursor.h"
#include "controller/store/record_text.h"
#include "controller/store/sql/sql_leases.h"

namespace shoal::controller {
namespace {

constexpr int kMostOnAPage = 1000;

int64_t Micros(WallTime time) { return time.time_since_epoch().count(); }
WallTime Wall(int64_t micros) { return WallTime(std::chrono::microseconds(micros)); }

Status CheckName(std::string_view what, std::string_view text, size_t limit) {
  if (text.empty() || text.size() > limit) {
    return InvalidArgument(
        fmt::format("a record's {} has {} bytes, expected 1 to {}", what, text.size(), limit));
  }
  if (!IsUtf8(text) || text.find('\0') != std::string_view::npos) {
    return InvalidArgument(fmt::format("a record's {} \"{}\" is not UTF-8 without null bytes", what,
                                       EscapedUtf8(text)));
  }
  return Status::Ok();
}

Status CheckChange(const RecordChange& change) {
  TRY(CheckName("kind", change.kind, kMaxRecordKind));
  TRY(CheckName("key", change.key, kMaxRecordKey));
  if (!change.body) return Status::Ok();
  TRY(CheckUtf8(*change.body).With(change.kind + " " + change.key));
  const size_t size = ToText(*change.body).size();
  if (size <= kMaxRecordBody) return Status::Ok();
  return InvalidArgument(fmt::format("{} {}: has {} bytes, expected at most {}", change.kind,
                                     change.key, size, kMaxRecordBody));
}

Record ReadRecord(const Statement& row, std::string_view kind) {
  Record record{std::string(kind), row.Text(0), {}, row.Int(1), Wall(row.Int(2)), ""};
  Result<json::object> body = ParseJsonObject(row.Text(3));
  if (body.ok()) record.body = std::move(*body);
  if (!body.ok()) record.damage = body.status().message();
  return record;
}

// The version that the record has; 0: there is none.
Result<int64_t> VersionOf(SqlConnection& db, const RecordChange& change) {
  TRY_ASSIGN(Statement select,
             db.Prepare("SELECT version FROM records WHERE kind = ?1 AND key = ?2"));
  TRY_ASSIGN(const bool found, select.Bind(1, change.kind).Bind(2, change.key).Step());
  return found ? select.Int(0) : 0;
}

Status CheckExpected(const RecordChange& change, int64_t version) {
  const std::string name = change.kind + " " + change.key;
  if (change.expected == kAbsent && version != 0) return AlreadyExists(name + " exists already");
  if (version == 0 && (change.expected > 0 || !change.body)) return NotFound("there is no " + name);
  if (change.expected > 0 && change.expected != version) {
    return Aborted(fmt::format("{} has changed: it has version {}, expected {}; read it again",
                               name, version, change.expected));
  }
  return Status::Ok();
}

Status ApplyChange(SqlConnection& db, const RecordChange& change, int64_t version, WallTime now) {
  TRY_ASSIGN(const int64_t before, VersionOf(db, change));
  TRY(CheckExpected(change, before));
  if (!change.body) {
    TRY_ASSIGN(Statement remove, db.Prepare("DELETE FROM records WHERE kind = ?1 AND key = ?2"));
    return remove.Bind(1, change.kind).Bind(2, change.key).Run();
  }
  TRY_ASSIGN(Statement put,
             db.Prepare("INSERT INTO records (kind, key, version, changed, body) "
                        "VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (kind, key) DO UPDATE SET "
                        "version = excluded.version, changed = excluded.changed, "
                        "body = excluded.body"));
  const std::string body = ToText(*change.body);
  put.Bind(1, change.kind).Bind(2, change.key).Bind(3, version).Bind(4, Micros(now));
  return put.Bind(5, body).Run();
}

// Rows of a `DELETE … RETURNING`.
Result<int64_t> CountRows(Statement& statement) {
  int64_t rows = 0;
  while (true) {
    TRY_ASSIGN(const bool row, statement.Step());
    if (!row) return rows;
    ++rows;
  }
}

}  // namespace

Status CheckPageLimit(int limit) {
  if (limit >= 1 && limit <= kMostOnAPage) return Status::Ok();
  return InvalidArgument(fmt::format("limit: got {}, expected 1 to {}", limit, kMostOnAPage));
}

Result<int64_t> NextCount(SqlConnection& db, std::string_view name) {
  TRY_ASSIGN(Statement next,
             db.Prepare("INSERT INTO counters (name, value) VALUES (?1, 1) ON CONFLICT (name) "
                        "DO UPDATE SET value = counters.value + 1 RETURNING value"));
  TRY_ASSIGN(const bool row, next.Bind(1, name).Step());
  return row ? Result<int64_t>(next.Int(0)) : Internal("a counter has no value");
}

Result<Record> SqlRecords::Get(std::string_view kind, std::string_view key) {
  TRY(CheckName("kind", kind, kMaxRecordKind));
  TRY(CheckName("key", key, kMaxRecordKey));
  Result<Record> record = NotFound("");
  const Status done = database_->Read([&](SqlConnection& db) -> Status {
    TRY_ASSIGN(Statement select, db.Prepare("SELECT key, version, changed, body FROM records "
                                            "WHERE kind = ?1 AND key = ?2"));
    TRY_ASSIGN(const bool found, select.Bind(1, kind).Bind(2, key).Step());
    record = found ? Result<Record>(ReadRecord(select, kind))
                   : NotFound(fmt::format("there is no {} {}", kind, key));
    return Status::Ok();
  });
  TRY(done);
  return record;
}

Result<RecordPage> SqlRecords::List(std::string_view kind, std::string_view prefix,
                                    std::string_view after, int limit) {
  TRY(CheckName("kind", kind, kMaxRecordKind));
  TRY(CheckPageLimit(limit));
  // Other text is in no key.
  if (!IsUtf8(prefix) || prefix.find('\0') != std::string_view::npos) return RecordPage{};
  RecordPage page;
  const Status done = database_->Read([&](SqlConnection& db) -> Status {
    page = {};
    TRY_ASSIGN(Statement select,
               db.Prepare("SELECT key, version, changed, body FROM records WHERE kind = ?1 AND "
                          "key >= ?2 AND key > ?3 AND substr(key, 1, length(?2)) = ?2 "
                          "ORDER BY key LIMIT ?4"));
    select.Bind(1, kind).Bind(2, prefix).Bind(3, after).Bind(4, int64_t{limit} + 1);
    while (true) {
      TRY_ASSIGN(const bool row, select.Step());
      if (!row) return Status::Ok();
      if (static_cast<int>(page.records.size()) == limit) {
        page.next = page.records.back().key;
        return Status::Ok();
      }
      page.records.push_back(ReadRecord(select, kind));
    }
  });
  TRY(done);
  return page;
}

Result<int64_t> SqlRecords::Apply(std::span<const RecordChange> changes, WallTime now) {
  for (const RecordChange& change : changes) TRY(CheckChange(change));
  int64_t version = 0;
  const Fence fence = fence_();
  const Status done = database_->Write(Durability::kSynced, [&](SqlConnection& db) -> Result<bool> {
    TRY(SqlLeases::Check(db, fence));
    TRY_ASSIGN(version, NextCount(db, "record_version"));
    for (const RecordChange& change : changes) TRY(ApplyChange(db, change, version, now));
    return !changes.empty();
  });
  TRY(done);
  return version;
}

Result<int64_t> SqlRecords::DeleteOlder(std::string_view kind, WallTime before) {
  TRY(CheckName("kind", kind, kMaxRecordKind));
  int64_t deleted = 0;
  const Fence fence = fence_();
  const Status done = database_->Write(Durability::kSynced, [&](SqlConnection& db) -> Result<bool> {
    TRY(SqlLeases::Check(db, fence));
    TRY_ASSIGN(Statement remove, db.Prepare("DELETE FROM records WHERE kind = ?1 AND "
                                            "changed < ?2 RETURNING version"));
    TRY_ASSIGN(deleted, CountRows(remove.Bind(1, kind).Bind(2, Micros(before))));
    return deleted > 0;
  });
  TRY(done);
  return deleted;
}

Status SqlAudit::Append(std::span<const AuditEntry> entries) {
  return database_->Write(Durability::kSynced, [&](SqlConnection& db) -> Result<bool> {
    for (const AuditEntry& entry : entries) {
      TRY_ASSIGN(Statement insert,
                 db.Prepare("INSERT INTO audit (time, actor, team, action, object, detail) "
                            "VALUES (?1, ?2, ?3, ?4, ?5, ?6)"));
      const std::string actor = ValidUtf8(entry.actor);
      const std::string team = ValidUtf8(entry.team);
      const std::string action = ValidUtf8(entry.action);
      const std::string object = ValidUtf8(entry.object);
      const std::string detail = RecordText(entry.detail);
      insert.Bind(1, Micros(entry.time)).Bind(2, actor).Bind(3, team).Bind(4, action);
      TRY(insert.Bind(5, object).Bind(6, detail).Run());
    }
    return !entries.empty();
  });
}

namespace {

AuditEntry ReadEntry(const Statement& row) {
  AuditEntry entry{row.Int(0),  Wall(row.Int(1)), row.Text(2), row.Text(3),
                   row.Text(4), row.Text(5),      {}};
  Result<json::object> detail = ParseJsonObject(row.Text(6));
  entry.detail =
      detail.ok() ? std::move(*detail) : json::object{{"unreadable", detail.status().message()}};
  return entry;
}

// The condition and its parameters from ?3 on, one for each field that is set.
struct AuditWhere {
  std::string sql;
  std::vector<std::variant<std::string, int64_t>> values;

  void Add(const char* condition, std::variant<std::string, int64_t> value) {
    values.push_back(std::move(value));
    sql += " AND " + fmt::format(fmt::runtime(condition), fmt::arg("p", values.size() + 2));
  }
};

AuditWhere WhereOf(const AuditFilter& filter) {
  AuditWhere where;
  if (!filter.actor.empty()) where.Add("actor = ?{p}", filter.actor);
  if (!filter.team.empty()) where.Add("team = ?{p}", filter.team);
  if (!filter.object.empty()) where.Add("object = ?{p}", filter.object);
  if (!filter.action.empty()) {
    where.Add("(action = ?{p} OR substr(action, 1, length(?{p}) + 1) = ?{p} || '.')",
              filter.action);
  }
  if (filter.since != WallTime{}) where.Add("time >= ?{p}", Micros(filter.since));
  if (filter.until != WallTime{}) where.Add("time < ?{p}", Micros(filter.until));
  return where;
}

}  // namespace

Result<AuditPage> SqlAudit::Read(const AuditFilter& filter, std::string_view after, int limit) {
  TRY(CheckPageLimit(limit));
  int64_t before = INT64_MAX;
  if (!after.empty()) {
    TRY_ASSIGN(before, ParseCursor(store_id_, after));
  }
  const AuditWhere where = WhereOf(filter);
  AuditPage page;
  const Status done = database_->Read([&](SqlConnection& db) -> Status {
    page = {};
    TRY_ASSIGN(Statement select,
               db.Prepare(fmt::format("SELECT seq, time, actor, team, action, object, detail FROM "
                                      "audit WHERE seq < ?1{} ORDER BY seq DESC LIMIT ?2",
                                      where.sql)));
    select.Bind(1, before).Bind(2, int64_t{limit} + 1);
    for (int at = 3; const auto& value : where.values) {
      std::visit([&](const auto& one) { select.Bind(at, one); }, value);
      ++at;
    }
    while (true) {
      TRY_ASSIGN(const bool row, select.Step());
      if (!row) return Status::Ok();
      if (static_cast<int>(page.entries.size()) == limit) {
        page.next = FormatCursor(store_id_, page.entries.back().seq);
        return Status::Ok();
      }
      page.entries.push_back(ReadEntry(select));
    }
  });
  TRY(done);
  return page;
}

Result<int64_t> SqlAudit::Trim(WallTime before) {
  int64_t deleted = 0;
  const Status done = database_->Write(Durability::kSynced, [&](SqlConnection& db) -> Result<bool> {
    TRY_ASSIGN(Statement remove, db.Prepare("DELETE FROM audit WHERE time < ?1 RETURNING seq"));
    TRY_ASSIGN(deleted, CountRows(remove.Bind(1, Micros(before))));
    return deleted > 0;
  });
  TRY(done);
  return deleted;
}

}  // namespace shoal::controller
