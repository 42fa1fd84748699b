// Documents with versions, and the audit log: the part of the store that the server's people,
// tokens, secrets, policies and idempotency keys live in. `api` writes no SQL; it uses these.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"

namespace shoal::controller {

// Limits of one record. Put and Apply refuse more with InvalidArgument.
inline constexpr size_t kMaxRecordKind = 64;
inline constexpr size_t kMaxRecordKey = 512;
inline constexpr size_t kMaxRecordBody = size_t{1} << 20;  // bytes of the JSON text

// A document. `kind` and `key` together name it.
struct Record {
  std::string kind;
  std::string key;
  json::object body;
  int64_t version = 0;  // grows with every change of any record; never used twice
  WallTime changed{};
  std::string damage;  // why the stored text cannot be read; `body` is empty then
};

// Values of `expected` beside a version that was read.
inline constexpr int64_t kAbsent = 0;       // the record must not exist
inline constexpr int64_t kAnyVersion = -1;  // whatever is there is replaced

struct RecordChange {
  std::string kind;
  std::string key;
  std::optional<json::object> body;  // none: delete the record
  int64_t expected = kAnyVersion;
};

struct RecordPage {
  std::vector<Record> records;  // ascending by the bytes of their keys
  std::string next;             // pass as `after` for the next page; empty: there are no more
};

// Thread-safe. Every change is durable (a synced commit) when the call returns. Errors of
// compare-and-set: AlreadyExists (kAbsent, and it exists), NotFound (a version, or a deletion, and
// it does not exist), Aborted (it has another version: read it again and decide again).
// InvalidArgument for text that is not UTF-8 or above the limits.
class Records {
 public:
  virtual ~Records() = default;

  // NotFound.
  virtual Result<Record> Get(std::string_view kind, std::string_view key) = 0;
  // Records of the kind whose keys begin with `prefix` and are greater than `after`, at most
  // `limit` (1 to 1000).
  virtual Result<RecordPage> List(std::string_view kind, std::string_view prefix,
                                  std::string_view after, int limit) = 0;
  // Makes all changes in one commit or none of them. Returns the version that the records which
  // were put have now.
  virtual Result<int64_t> Apply(std::span<const RecordChange> changes, WallTime now) = 0;
  // Deletes records of the kind that were last changed before `before`. Returns their number.
  virtual Result<int64_t> DeleteOlder(std::string_view kind, WallTime before) = 0;

  // Apply with one change.
  Result<int64_t> Put(std::string_view kind, std::string_view key, const json::object& body,
                      int64_t expected, WallTime now) {
    const RecordChange change{std::string(kind), std::string(key), body, expected};
    return Apply({&change, 1}, now);
  }
  Status Delete(std::string_view kind, std::string_view key, int64_t expected, WallTime now) {
    const RecordChange change{std::string(kind), std::string(key), std::nullopt, expected};
    return Apply({&change, 1}, now).status();
  }
};

// One action of a person or program, for the record.
struct AuditEntry {
  int64_t seq = 0;  // set by the store, ascending in commit order
  WallTime time{};
  std::string actor;   // user or service account
  std::string team;    // may be empty
  std::string action;  // "job.stop", "token.create", "log.read", …
  std::string object;  // what it was done to: a job's id, a user, …
  json::object detail;
};

// Empty fields match everything.
struct AuditFilter {
  std::string actor{};
  std::string team{};
  std::string action{};  // the action, or its beginning up to a dot: "job" matches "job.stop"
  std::string object{};
  WallTime since{};  // inclusive
  WallTime until{};  // exclusive; epoch: no limit
};

struct AuditPage {
  std::vector<AuditEntry> entries;  // newest first
  std::string next;                 // cursor of the next, older page; empty: there are no more
};

// Thread-safe. Entries are never changed; only Trim deletes them.
class Audit {
 public:
  virtual ~Audit() = default;
  // Durable when it returns.
  virtual Status Append(std::span<const AuditEntry> entries) = 0;
  // At most `limit` (1 to 1000) entries older than the cursor `after` (empty: from the newest).
  // InvalidArgument for a cursor that is not one of this store.
  virtual Result<AuditPage> Read(const AuditFilter& filter, std::string_view after, int limit) = 0;
  // Deletes entries from before `before`. Returns their number.
  virtual Result<int64_t> Trim(WallTime before) = 0;
};

}  // namespace shoal::controller
