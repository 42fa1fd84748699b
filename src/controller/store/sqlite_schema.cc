#include "controller/store/sqlite_schema.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"

namespace shoal::controller {
namespace {

constexpr std::chrono::milliseconds kLockPause{2};
constexpr int64_t kOldestVersion = 1;
constexpr int64_t kNewestVersion = 2;
// Tables that a file without revision (of the first releases) lacks.
constexpr int64_t kRevision = 1;

constexpr const char* kSchema = R"sql(
CREATE TABLE jobs (
  ord INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of submission
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  ended_flag INTEGER NOT NULL,
  reason TEXT NOT NULL,
  engine TEXT NOT NULL,
  job TEXT NOT NULL,
  result TEXT NOT NULL,
  owner_pid INTEGER NOT NULL,
  owner_start INTEGER NOT NULL,
  owner_boot TEXT NOT NULL,
  submitted INTEGER NOT NULL,             -- microseconds since the epoch, as are the next two
  started INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  last_seq INTEGER NOT NULL
);
CREATE INDEX jobs_unfinished ON jobs (ord) WHERE ended_flag = 0;
CREATE TABLE events (
  job TEXT NOT NULL, seq INTEGER NOT NULL, time INTEGER NOT NULL, type TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (job, seq)
) WITHOUT ROWID;
CREATE TABLE tasks (
  job TEXT NOT NULL, role TEXT NOT NULL, idx INTEGER NOT NULL, first_seq INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (job, role, idx)
) WITHOUT ROWID;
PRAGMA user_version = 1;
)sql";

// `positions` numbers the events of all jobs. Events of a removed job leave it, except the newest
// of all, so that no number is given twice. The events of earlier releases get positions by time;
// where a clock went back, a job's events stay in their order.
constexpr const char* kAdditions = R"sql(
CREATE INDEX IF NOT EXISTS jobs_expiring ON jobs (ended)
  WHERE ended_flag = 1 AND json_extract(job, '$.limits.keep_records_ms') > 0;
ALTER TABLE jobs ADD COLUMN team TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN user_name TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';
ALTER TABLE jobs ADD COLUMN lease_epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN first_position INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_by_team ON jobs (team, state, ord);
CREATE INDEX jobs_by_user ON jobs (user_name, ord);
CREATE TABLE labels (
  name TEXT NOT NULL, value TEXT NOT NULL, ord INTEGER NOT NULL,
  PRIMARY KEY (name, value, ord)
) WITHOUT ROWID;
CREATE TABLE positions (
  position INTEGER PRIMARY KEY, ord INTEGER NOT NULL, seq INTEGER NOT NULL
);
INSERT INTO positions (ord, seq)
  SELECT ord, seq FROM (
    SELECT jobs.ord AS ord, seq,
           max(time) OVER (PARTITION BY jobs.ord ORDER BY seq) AS at
    FROM events JOIN jobs ON jobs.id = events.job)
  ORDER BY at, ord, seq;
UPDATE jobs SET first_position = found.first
  FROM (SELECT ord, min(position) AS first FROM positions GROUP BY ord) AS found
  WHERE jobs.ord = found.ord;
CREATE TRIGGER events_inserted AFTER INSERT ON events BEGIN
  INSERT INTO positions (ord, seq) SELECT ord, new.seq FROM jobs WHERE id = new.job;
  UPDATE jobs SET first_position = (SELECT max(position) FROM positions)
    WHERE id = new.job AND new.seq = 1;
END;
CREATE TRIGGER job_removed AFTER DELETE ON jobs BEGIN
  DELETE FROM positions WHERE position IN (
      SELECT position FROM positions WHERE position >= old.first_position AND ord = old.ord
      ORDER BY position LIMIT old.last_seq)
    AND position < (SELECT max(position) FROM positions);
  DELETE FROM labels WHERE ord = old.ord AND (name, value) IN (
      SELECT key, value FROM json_each(old.labels));
END;
CREATE TABLE counters (name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE leases (
  name TEXT NOT NULL PRIMARY KEY, holder TEXT NOT NULL, epoch INTEGER NOT NULL,
  expires INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE records (
  kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, changed INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (kind, key)
);
CREATE INDEX records_by_change ON records (kind, changed);
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, actor TEXT NOT NULL,
  team TEXT NOT NULL, action TEXT NOT NULL, object TEXT NOT NULL, detail TEXT NOT NULL
);
CREATE INDEX audit_by_actor ON audit (actor, seq);
CREATE INDEX audit_by_team ON audit (team, seq);
CREATE INDEX audit_by_object ON audit (object, seq);
CREATE TABLE meta (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
)sql";

struct Version {
  int64_t version = 0;   // user_version; 0: there are no tables
  int64_t revision = 0;  // 0: made by a release without kAdditions
  std::string store_id;
};

Result<Version> ReadVersion(SqliteConnection* db) {
  Version found;
  {
    TRY_ASSIGN(Statement version, db->Prepare("PRAGMA user_version"));
    TRY_ASSIGN(const bool row, version.Step());
    found.version = row ? version.Int(0) : 0;
  }
  if (found.version < kOldestVersion || found.version > kNewestVersion) return found;
  TRY_ASSIGN(Statement table,
             db->Prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'"));
  TRY_ASSIGN(const bool exists, table.Step());
  if (!exists) return found;
  TRY_ASSIGN(Statement select, db->Prepare("SELECT name, value FROM meta"));
  while (true) {
    TRY_ASSIGN(const bool row, select.Step());
    if (!row) return found;
    if (select.Text(0) == "revision") found.revision = select.Int(1);
    if (select.Text(0) == "store_id") found.store_id = select.Text(1);
  }
}

bool IsComplete(const Version& found) {
  return found.version != 0 && found.revision >= kRevision && !found.store_id.empty();
}

Status CheckVersion(const Version& found, const std::filesystem::path& path) {
  if (found.version >= 0 && found.version <= kNewestVersion) return Status::Ok();
  return FailedPrecondition(
      fmt::format("{}: has version {} of the tables, this shoal supports versions {} to {}; use a "
                  "newer shoal, or set SHOAL_HOME to another directory",
                  path.string(), found.version, kOldestVersion, kNewestVersion));
}

Status MakeTables(SqliteConnection* db, const Version& found,
                  const std::filesystem::path& directory, bool several_machines) {
  if (found.version == 0) TRY(SetJournal(db, several_machines));
  TRY_ASSIGN(Transaction transaction, Transaction::Begin(db));
  // A process that sees the tables may rely on synced file names (sqlite_connection.cc).
  TRY(SyncDirectory(directory));
  if (found.version == 0) TRY(db->Execute(kSchema));
  TRY(db->Execute(kAdditions));
  const std::string meta = fmt::format(
      "INSERT INTO meta VALUES ('revision', '{}'), ('store_id', '{}')", kRevision, RandomHex(8));
  TRY(db->Execute(meta.c_str()));
  return transaction.Commit();
}

// Locks for checking (LOCK_SH) and making (LOCK_EX) the tables: SQLite fails at once, without its
// timeout, while a file is converted to WAL and another process reads it.
Status Lock(int bell, int how, int timeout_ms, const std::filesystem::path& path) {
  const TimePoint end = RealClock::Get()->Now() + std::chrono::milliseconds(timeout_ms);
  while (::flock(bell, how | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return ErrnoStatus(errno, "flock " + path.string());
    if (RealClock::Get()->Now() >= end) return LockedTooLong(path.string());
    std::this_thread::sleep_for(kLockPause);
  }
  return Status::Ok();
}

}  // namespace

// The WAL's index is shared memory of one machine, so a file system that several machines share
// needs another mode (sqlite.org/wal.html, "Disadvantages", 2).
Status SetJournal(SqliteConnection* db, bool several_machines) {
  return db->Execute(several_machines ? "PRAGMA journal_mode = DELETE"
                                      : "PRAGMA journal_mode = WAL");
}

Result<std::string> EnsureSchema(SqliteConnection* db, int bell, const std::filesystem::path& path,
                                 int timeout_ms, bool several_machines) {
  TRY(Lock(bell, LOCK_SH, timeout_ms, path));
  TRY_ASSIGN(Version found, ReadVersion(db));
  TRY(CheckVersion(found, path));
  if (IsComplete(found)) return found.store_id;
  TRY(Lock(bell, LOCK_EX, timeout_ms, path));
  TRY_ASSIGN(found, ReadVersion(db));  // another process may have been quicker
  TRY(CheckVersion(found, path));
  if (IsComplete(found)) return found.store_id;
  TRY(MakeTables(db, found, path.parent_path(), several_machines));
  TRY_ASSIGN(found, ReadVersion(db));
  return found.store_id;
}

}  // namespace shoal::controller
