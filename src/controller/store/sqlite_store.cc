// Three tables: events (the log), and jobs and tasks (the derived state). Every write reads the
// job, applies the events to its record (job_record.cc) and writes both in one transaction.

#include "controller/store/sqlite_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/private_files.h"
#include "base/utf8.h"
#include "controller/store/file_watch.h"
#include "controller/store/process_identity.h"
#include "controller/store/record_text.h"
#include "controller/store/sqlite_connection.h"
#include "host/files/network_fs.h"
#include "rendezvous/logs/disk_retry.h"

namespace shoal::controller {
namespace {

constexpr int kSchemaVersion = 1;
constexpr std::chrono::milliseconds kLockPause{2};

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

// Index of the few jobs with keep_records; stores of earlier versions get it, too, and stay
// readable and writable for them.
constexpr const char* kExpiring = R"sql(
CREATE INDEX IF NOT EXISTS jobs_expiring ON jobs (ended)
  WHERE ended_flag = 1 AND json_extract(job, '$.limits.keep_records_ms') > 0
)sql";

constexpr std::string_view kJobColumns =
    "SELECT id, name, state, reason, engine, job, result, owner_pid, owner_start, owner_boot, "
    "submitted, started, ended, last_seq, ord FROM jobs ";

// A one-byte file beside the database; writing it notifies the other processes of a commit.
std::string BellName(const std::filesystem::path& path) {
  return path.filename().string() + "-bell";
}

int64_t Micros(WallTime time) { return time.time_since_epoch().count(); }
WallTime Wall(int64_t micros) { return WallTime(std::chrono::microseconds(micros)); }

// Reads a column with a JSON object; a parse error becomes the record's damage.
json::object ReadField(const Statement& row, int column, const char* name, JobRecord* job) {
  Result<json::object> object = ParseJsonObject(row.Text(column));
  if (object.ok()) return std::move(*object);
  if (job->damage.empty()) {
    job->damage = fmt::format("its record cannot be read: the column '{}' of shoal.db: {}", name,
                              object.status().message());
  }
  return {};
}

JobRecord RowToJob(const Statement& row) {
  JobRecord job;
  job.id = row.Text(0);
  job.name = ValidUtf8(row.Text(1));
  const std::optional<JobState> state = job::ParseJobState(row.Text(2));
  job.ended = Wall(row.Int(12));
  job.state = state.value_or(job.ended == WallTime{} ? JobState::kRunning : JobState::kFailed);
  if (!state) {
    job.damage = fmt::format("its record cannot be read: it has the unknown state \"{}\"",
                             EscapedUtf8(row.Text(2)));
  }
  job.reason = ValidUtf8(row.Text(3));
  job.engine = row.Text(4);
  job.job = ReadField(row, 5, "job", &job);
  job.result = ReadField(row, 6, "result", &job);
  job.owner = {row.Int(7), row.Int(8), "", 0};
  ParseProcessScope(row.Text(9), &job.owner);
  job.submitted = Wall(row.Int(10));
  job.started = Wall(row.Int(11));
  job.last_seq = row.Int(13);
  job.order = row.Int(14);
  return job;
}

class SqliteStore final : public Store {
 public:
  SqliteStore(SqliteConnection db, std::filesystem::path path, UniqueFd bell)
      : db_(std::move(db)), path_(std::move(path)), bell_(std::move(bell)) {}

  Status Submit(const NewJob& job) override;
  Status Append(const std::string& id, std::span<const Event> events,
                Durability durability) override;
  Status AppendDecided(const std::string& id, const Decide& decide, Durability durability) override;
  Result<bool> ClaimOwnership(const std::string& id, const ProcessIdentity& from,
                              const ProcessIdentity& to, WallTime time) override;
  Status Remove(const std::string& id) override;
  Result<std::vector<std::string>> ListExpired(WallTime now) override;
  Result<JobRecord> GetJob(const std::string& id) override;
  Result<JobRecord> FindJob(std::string_view prefix) override;
  Result<std::vector<JobRecord>> ListJobs(const JobQuery& query) override;
  Result<std::vector<TaskRecord>> ListTasks(const std::string& id) override;
  Result<std::vector<Event>> ReadEvents(const std::string& id, int64_t after, int limit) override;
  Result<std::unique_ptr<Watcher>> Watch(std::function<void()> on_change) override;
  StoreCounters counters() const override { return {synced_, written_}; }

 private:
  // The methods below require mu_.
  Result<JobRecord> Load(const std::string& id);
  Result<std::vector<JobRecord>> Select(const JobQuery& query);
  Status Save(const JobRecord& job);
  Status SaveSpec(const JobRecord& job);  // not written by Save
  Status ApplyAll(std::span<const Event> events, JobRecord* job);
  Status InsertEvent(const std::string& id, const Event& event);
  Status UpsertTask(const std::string& id, const Event& event);
  Status SetDurability(Durability durability);
  // Counts a commit and notifies watchers.
  void Committed(Durability durability);

  std::mutex mu_;
  SqliteConnection db_;                          // guarded by mu_
  Durability durability_ = Durability::kSynced;  // of db_; guarded by mu_
  const std::filesystem::path path_;
  const UniqueFd bell_;  // written to after every commit
  std::atomic<uint64_t> synced_{0};
  std::atomic<uint64_t> written_{0};
};

Status SqliteStore::SetDurability(Durability durability) {
  if (durability == durability_) return Status::Ok();
  // In WAL mode NORMAL writes the commit without a sync; the next FULL commit syncs both.
  TRY(db_.Execute(durability == Durability::kSynced ? "PRAGMA synchronous = FULL"
                                                    : "PRAGMA synchronous = NORMAL"));
  durability_ = durability;
  return Status::Ok();
}

// The write-ahead log cannot serve as the notification: it changes before the commit is visible.
void SqliteStore::Committed(Durability durability) {
  ++(durability == Durability::kSynced ? synced_ : written_);
  (void)WriteAllAt(bell_.get(), "\n", 0);
}

Status SqliteStore::InsertEvent(const std::string& id, const Event& event) {
  TRY_ASSIGN(Statement insert, db_.Prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?)"));
  const std::string body = RecordText(event.body);
  insert.Bind(1, id).Bind(2, event.seq).Bind(3, Micros(event.time)).Bind(4, event.type);
  return insert.Bind(5, body).Run();
}

Status SqliteStore::UpsertTask(const std::string& id, const Event& event) {
  TRY_ASSIGN(const TaskRecord task, ParseTask(event.body));
  TRY_ASSIGN(Statement insert,
             db_.Prepare("INSERT INTO tasks VALUES (?, ?, ?, ?, ?) ON CONFLICT (job, role, idx) "
                         "DO UPDATE SET body = excluded.body"));
  const std::string body = RecordText(event.body);
  insert.Bind(1, id).Bind(2, task.role).Bind(3, int64_t{task.index}).Bind(4, event.seq);
  return insert.Bind(5, body).Run();
}

Status SqliteStore::ApplyAll(std::span<const Event> events, JobRecord* job) {
  for (Event event : events) {
    event.seq = job->last_seq + 1;
    TRY(ApplyEvent(event, job));
    TRY(InsertEvent(job->id, event));
    if (event.type == "task") TRY(UpsertTask(job->id, event));
    if (event.type == "resized") TRY(SaveSpec(*job));
  }
  return Status::Ok();
}

Status SqliteStore::Save(const JobRecord& job) {
  TRY_ASSIGN(Statement update,
             db_.Prepare("UPDATE jobs SET state = ?2, ended_flag = ?3, reason = ?4, result = ?5, "
                         "owner_pid = ?6, owner_start = ?7, owner_boot = ?8, started = ?9, "
                         "ended = ?10, last_seq = ?11 WHERE id = ?1"));
  const std::string result = RecordText(job.result);
  const std::string reason = ValidUtf8(job.reason);
  const std::string realm = FormatProcessScope(job.owner);
  update.Bind(1, job.id).Bind(2, job::NameOf(job.state));
  update.Bind(3, int64_t{job::IsFinal(job.state)}).Bind(4, reason).Bind(5, result);
  update.Bind(6, job.owner.pid).Bind(7, job.owner.start_ticks).Bind(8, realm);
  update.Bind(9, Micros(job.started)).Bind(10, Micros(job.ended)).Bind(11, job.last_seq);
  return update.Run();
}

Status SqliteStore::SaveSpec(const JobRecord& job) {
  TRY_ASSIGN(Statement update, db_.Prepare("UPDATE jobs SET job = ?2 WHERE id = ?1"));
  const std::string text = RecordText(job.job);
  return update.Bind(1, job.id).Bind(2, text).Run();
}

Status SqliteStore::Submit(const NewJob& job) {
  TRY(CheckUtf8(job.job));
  const std::lock_guard lock(mu_);
  TRY(SetDurability(Durability::kSynced));
  TRY_ASSIGN(Transaction transaction, Transaction::Begin(&db_));
  const std::string text = RecordText(job.job);
  const std::string realm = FormatProcessScope(job.owner);
  {
    TRY_ASSIGN(Statement insert,
               db_.Prepare("INSERT INTO jobs (id, name, state, ended_flag, reason, engine, job, "
                           "result, owner_pid, owner_start, owner_boot, submitted, started, ended, "
                           "last_seq) VALUES (?, ?, 'pending', 0, '', ?, ?, '{}', ?, ?, ?, ?, 0, "
                           "0, 0)"));
    insert.Bind(1, job.id).Bind(2, job.name).Bind(3, job.engine).Bind(4, text);
    insert.Bind(5, job.owner.pid).Bind(6, job.owner.start_ticks).Bind(7, realm);
    const Status inserted = insert.Bind(8, Micros(job.time)).Run();
    if (inserted.code() == Code::kAlreadyExists)
      return AlreadyExists("there is a job " + job.id + " already");
    TRY(inserted);
  }
  JobRecord record;
  record.id = job.id;
  const Event submitted{
      0,
      job.time,
      "submitted",
      {{"name", job.name}, {"engine", job.engine}, {"job", job.job}, {"owner", ToJson(job.owner)}}};
  TRY(ApplyAll({&submitted, 1}, &record));
  TRY(Save(record));
  TRY(transaction.Commit());
  Committed(Durability::kSynced);
  return Status::Ok();
}

Status SqliteStore::Append(const std::string& id, std::span<const Event> events,
                           Durability durability) {
  if (events.empty()) return Status::Ok();
  const std::lock_guard lock(mu_);
  TRY(SetDurability(durability));
  TRY_ASSIGN(Transaction transaction, Transaction::Begin(&db_));
  TRY_ASSIGN(JobRecord job, Load(id));
  TRY(ApplyAll(events, &job));
  TRY(Save(job));
  TRY(transaction.Commit());
  Committed(durability);
  return Status::Ok();
}

Status SqliteStore::AppendDecided(const std::string& id, const Decide& decide,
                                  Durability durability) {
  const std::lock_guard lock(mu_);
  TRY(SetDurability(durability));
  TRY_ASSIGN(Transaction transaction, Transaction::Begin(&db_));
  TRY_ASSIGN(JobRecord job, Load(id));
  TRY_ASSIGN(std::vector<JobRecord> unfinished, Select({.ended = false, .limit = INT32_MAX}));
  std::reverse(unfinished.begin(), unfinished.end());
  const std::vector<Event> events = decide(unfinished);
  if (events.empty()) return Status::Ok();
  TRY(ApplyAll(events, &job));
  TRY(Save(job));
  TRY(transaction.Commit());
  Committed(durability);
  return Status::Ok();
}

Result<bool> SqliteStore::ClaimOwnership(const std::string& id, const ProcessIdentity& from,
                                         const ProcessIdentity& to, WallTime time) {
  const std::lock_guard lock(mu_);
  TRY(SetDurability(Durability::kWritten));
  TRY_ASSIGN(Transaction transaction, Transaction::Begin(&db_));
  TRY_ASSIGN(JobRecord job, Load(id));
  if (job::IsFinal(job.state) || !(job.owner == from)) return false;
  const Event owner{0, time, "owner", ToJson(to)};
  TRY(ApplyAll({&owner, 1}, &job));
  TRY(Save(job));
  TRY(transaction.Commit());
  Committed(Durability::kWritten);
  return true;
}

Status SqliteStore::Remove(const std::string& id) {
  const std::lock_guard lock(mu_);
  TRY(SetDurability(Durability::kWritten));
  TRY_ASSIGN(Transaction transaction, Transaction::Begin(&db_));
  TRY_ASSIGN(const JobRecord job, Load(id));
  if (!job::IsFinal(job.state)) {
    return FailedPrecondition("job " + id + " has not ended, but is " +
                              std::string(job::NameOf(job.state)));
  }
  for (const char* sql : {"DELETE FROM events WHERE job = ?", "DELETE FROM tasks WHERE job = ?",
                          "DELETE FROM jobs WHERE id = ?"}) {
    TRY_ASSIGN(Statement remove, db_.Prepare(sql));
    TRY(remove.Bind(1, id).Run());
  }
  TRY(transaction.Commit());
  Committed(Durability::kWritten);
  return Status::Ok();
}

Result<std::vector<std::string>> SqliteStore::ListExpired(WallTime now) {
  const std::lock_guard lock(mu_);
  TRY_ASSIGN(Statement select,
             db_.Prepare("SELECT id FROM jobs WHERE ended_flag = 1 AND "
                         "json_extract(job, '$.limits.keep_records_ms') > 0 AND ended + 1000 * "
                         "json_extract(job, '$.limits.keep_records_ms') <= ? ORDER BY ended"));
  select.Bind(1, Micros(now));
  std::vector<std::string> ids;
  while (true) {
    TRY_ASSIGN(const bool row, select.Step());
    if (!row) return ids;
    ids.push_back(select.Text(0));
  }
}

Result<JobRecord> SqliteStore::Load(const std::string& id) {
  TRY_ASSIGN(Statement select, db_.Prepare(fmt::format("{} WHERE id = ?", kJobColumns)));
  TRY_ASSIGN(const bool found, select.Bind(1, id).Step());
  if (!found) return NotFound("there is no job " + id);
  return RowToJob(select);
}

Result<JobRecord> SqliteStore::GetJob(const std::string& id) {
  const std::lock_guard lock(mu_);
  return Load(id);
}

Result<JobRecord> SqliteStore::FindJob(std::string_view prefix) {
  const std::lock_guard lock(mu_);
  if (Result<JobRecord> exact = Load(std::string(prefix));
      exact.ok() || exact.status().code() != Code::kNotFound) {
    return exact;
  }
  TRY_ASSIGN(Statement select, db_.Prepare(fmt::format("{} WHERE substr(id, 1, length(?1)) = ?1 "
                                                       "ORDER BY ord DESC LIMIT 6",
                                                       kJobColumns)));
  select.Bind(1, prefix);
  std::vector<JobRecord> found;
  while (true) {
    TRY_ASSIGN(const bool row, select.Step());
    if (!row) break;
    found.push_back(RowToJob(select));
  }
  if (found.empty() || prefix.empty())
    return NotFound(fmt::format("there is no job {}; see `shoal jobs --all`", prefix));
  if (found.size() == 1) return std::move(found.front());
  TRY_ASSIGN(Statement live, db_.Prepare(fmt::format("{} WHERE substr(id, 1, length(?1)) = ?1 AND "
                                                     "ended_flag = 0 LIMIT 2",
                                                     kJobColumns)));
  TRY_ASSIGN(const bool any, live.Bind(1, prefix).Step());
  if (any) {
    JobRecord only = RowToJob(live);
    TRY_ASSIGN(const bool more, live.Step());
    if (!more) return only;
  }
  std::string names;
  for (size_t i = 0; i < found.size() && i < 5; ++i) names += (i == 0 ? "" : ", ") + found[i].id;
  return InvalidArgument(fmt::format("{} matches {}{}; give a longer prefix", prefix, names,
                                     found.size() > 5 ? " …" : ""));
}

Result<std::vector<JobRecord>> SqliteStore::ListJobs(const JobQuery& query) {
  const std::lock_guard lock(mu_);
  return Select(query);
}

Result<std::vector<JobRecord>> SqliteStore::Select(const JobQuery& query) {
  std::vector<JobRecord> jobs;
  if (!query.ended && !query.unfinished) return jobs;
  const std::string_view where = query.ended && query.unfinished ? ""
                                 : query.ended                   ? "WHERE ended_flag = 1"
                                                                 : "WHERE ended_flag = 0";
  TRY_ASSIGN(Statement select,
             db_.Prepare(fmt::format("{} {} ORDER BY ord DESC LIMIT ?", kJobColumns, where)));
  select.Bind(1, int64_t{query.limit});
  while (true) {
    TRY_ASSIGN(const bool row, select.Step());
    if (!row) return jobs;
    jobs.push_back(RowToJob(select));
  }
}

Result<std::vector<TaskRecord>> SqliteStore::ListTasks(const std::string& id) {
  const std::lock_guard lock(mu_);
  TRY_ASSIGN(Statement select,
             db_.Prepare("SELECT body FROM tasks AS t WHERE job = ?1 ORDER BY (SELECT "
                         "min(first_seq) FROM tasks WHERE job = ?1 AND role = t.role), idx"));
  select.Bind(1, id);
  std::vector<TaskRecord> tasks;
  while (true) {
    TRY_ASSIGN(const bool row, select.Step());
    if (!row) return tasks;
    const Result<json::object> body = ParseJsonObject(select.Text(0));
    Result<TaskRecord> task = body.ok() ? ParseTask(*body) : body.status();
    if (task.ok()) tasks.push_back(std::move(*task));
    if (!task.ok()) LogWarning("skipped a task of job {}: {}", id, task.status().message());
  }
}

Result<std::vector<Event>> SqliteStore::ReadEvents(const std::string& id, int64_t after,
                                                   int limit) {
  const std::lock_guard lock(mu_);
  TRY_ASSIGN(Statement select,
             db_.Prepare("SELECT seq, time, type, body FROM events WHERE job = ? AND seq > ? "
                         "ORDER BY seq LIMIT ?"));
  select.Bind(1, id).Bind(2, after).Bind(3, int64_t{limit});
  std::vector<Event> events;
  while (true) {
    TRY_ASSIGN(const bool row, select.Step());
    if (!row) return events;
    Result<json::object> body = ParseJsonObject(select.Text(3));
    if (!body.ok()) body = json::object{{"unreadable", body.status().message()}};
    events.push_back({select.Int(0), Wall(select.Int(1)), select.Text(2), std::move(*body)});
  }
}

Result<std::unique_ptr<Store::Watcher>> SqliteStore::Watch(std::function<void()> on_change) {
  class FileWatcher final : public Watcher {
   public:
    explicit FileWatcher(std::unique_ptr<FileWatch> watch) : watch_(std::move(watch)) {}

   private:
    std::unique_ptr<FileWatch> watch_;
  };
  TRY_ASSIGN(auto watch,
             FileWatch::Start(path_.parent_path(), BellName(path_), std::move(on_change)));
  return std::unique_ptr<Watcher>(std::make_unique<FileWatcher>(std::move(watch)));
}

Result<int64_t> SchemaVersion(SqliteConnection* db) {
  TRY_ASSIGN(Statement version, db->Prepare("PRAGMA user_version"));
  TRY_ASSIGN(const bool row, version.Step());
  return row ? version.Int(0) : 0;
}

// The WAL's index is shared memory of one machine, so a file system that several machines share
// needs another mode (sqlite.org/wal.html, "Disadvantages", 2).
Status SetJournal(SqliteConnection* db, bool several_machines) {
  return db->Execute(several_machines ? "PRAGMA journal_mode = DELETE"
                                      : "PRAGMA journal_mode = WAL");
}

Status MakeSchema(SqliteConnection* db, const std::filesystem::path& directory,
                  bool several_machines) {
  TRY(SetJournal(db, several_machines));
  TRY_ASSIGN(Transaction transaction, Transaction::Begin(db));
  // A process that sees the tables may rely on synced file names (sqlite_connection.cc).
  TRY(SyncDirectory(directory));
  TRY(db->Execute(kSchema));
  TRY(db->Execute(kExpiring));
  return transaction.Commit();
}

// Locks for checking (LOCK_SH) and creating (LOCK_EX) the tables: SQLite fails at once, without its
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

// Version of the schema; creates the tables if there are none.
Result<int64_t> EnsureSchema(SqliteConnection* db, int bell, const std::filesystem::path& path,
                             int timeout_ms, bool several_machines) {
  TRY(Lock(bell, LOCK_SH, timeout_ms, path));
  TRY_ASSIGN(int64_t version, SchemaVersion(db));
  if (version != 0) return version;
  TRY(Lock(bell, LOCK_EX, timeout_ms, path));
  TRY_ASSIGN(version, SchemaVersion(db));  // another process may have been quicker
  if (version != 0) return version;
  TRY(MakeSchema(db, path.parent_path(), several_machines));
  return SchemaVersion(db);
}

// Job records hold secrets (`env`), so the files are private to the user in every directory and
// under every umask. SQLite gives later files the database's mode. Returns the notification file.
Result<UniqueFd> MakePrivate(const std::filesystem::path& path) {
  const std::string advice = "set SHOAL_HOME to a writable directory";
  if (const Status own = CheckOwnDirectory(path.parent_path()); !own.ok())
    return Status(own.code(), own.message() + "; or " + advice);
  TRY(OpenPrivateFile(path, O_RDWR).status());
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    const std::filesystem::path beside = path.string() + suffix;
    std::error_code ignored;  // it may be removed meanwhile, and SQLite's own are made like path
    std::filesystem::permissions(beside, std::filesystem::perms(0600), ignored);
  }
  return OpenPrivateFile(path.parent_path() / BellName(path), O_WRONLY);
}

// One attempt to open the store; a disk error may be temporary and is retried by the caller.
Result<std::unique_ptr<Store>> OpenOnce(const std::filesystem::path& path,
                                        const SqliteOptions& options) {
  if (const Status made = MakeDirectories(path.parent_path(), 0700); !made.ok()) {
    const bool denied = made.code() == Code::kPermissionDenied;
    return Status(denied ? Code::kPermissionDenied : Code::kFailedPrecondition,
                  made.message() + "; set SHOAL_HOME to a writable directory");
  }
  TRY_ASSIGN(UniqueFd bell, MakePrivate(path));
  TRY_ASSIGN(SqliteConnection db, SqliteConnection::Open(path, options.busy_timeout_ms));
  const bool several = options.several_machines || host::IsOnNetwork(path.parent_path());
  TRY_ASSIGN(const int64_t version,
             EnsureSchema(&db, bell.get(), path, options.busy_timeout_ms, several));
  if (version != kSchemaVersion) {
    return FailedPrecondition(
        fmt::format("{}: has version {} of the tables, this shoal supports version {}; use a newer "
                    "shoal, or set "
                    "SHOAL_HOME to another directory",
                    path.string(), version, kSchemaVersion));
  }
  // A file that an earlier version created with a WAL is converted when no other process has it
  // open.
  if (several && !SetJournal(&db, true).ok())
    shoal::LogInfo(
        "{}: still uses a write-ahead log, which machines cannot share: other processes have it "
        "open",
        path.string());
  TRY(db.Execute("PRAGMA synchronous = FULL"));
  TRY(db.Execute(kExpiring));
  ::flock(bell.get(), LOCK_UN);
  return std::unique_ptr<Store>(
      std::make_unique<SqliteStore>(std::move(db), path, std::move(bell)));
}

}  // namespace

Result<std::unique_ptr<Store>> OpenSqliteStore(const std::filesystem::path& path,
                                               const SqliteOptions& options) {
  const auto patience = [&](const Status& error) {
    return std::min(rendezvous::DeviceErrorTimeout(error), options.disk_patience);
  };
  return rendezvous::RetryOnDiskError([&] { return OpenOnce(path, options); }, patience);
}

}  // namespace shoal::controller
