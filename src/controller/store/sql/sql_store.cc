// Events (the log), and jobs and tasks (the derived state). Every write reads the job, applies the
// events to its record (job_record.cc) and writes both in one transaction.

#include "controller/store/sql/sql_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/utf8.h"
#include "controller/store/cursor.h"
#include "controller/store/process_identity.h"
#include "controller/store/record_text.h"
#include "controller/store/sql/sql_leases.h"
#include "controller/store/sql/sql_pages.h"
#include "controller/store/sql/sql_records.h"

namespace shoal::controller {
namespace {

constexpr std::string_view kJobColumns =
    "SELECT id, name, state, reason, engine, job, result, owner_pid, owner_start, owner_boot, "
    "submitted, started, ended, last_seq, ord, team, user_name, labels, lease_epoch FROM jobs ";

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
  job.team = row.Text(15);
  job.user = row.Text(16);
  job.labels = ParseLabels(row.Text(17));
  job.lease_epoch = row.Int(18);
  return job;
}

Status InsertEvent(SqlConnection& db, const std::string& id, const Event& event) {
  TRY_ASSIGN(Statement insert, db.Prepare("INSERT INTO events (job, seq, time, type, body) "
                                          "VALUES (?1, ?2, ?3, ?4, ?5)"));
  const std::string body = RecordText(event.body);
  insert.Bind(1, id).Bind(2, event.seq).Bind(3, Micros(event.time)).Bind(4, event.type);
  return insert.Bind(5, body).Run();
}

Status UpsertTask(SqlConnection& db, const std::string& id, const Event& event) {
  TRY_ASSIGN(const TaskRecord task, ParseTask(event.body));
  TRY_ASSIGN(Statement insert,
             db.Prepare("INSERT INTO tasks (job, role, idx, first_seq, body) "
                        "VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (job, role, idx) "
                        "DO UPDATE SET body = excluded.body"));
  const std::string body = RecordText(event.body);
  insert.Bind(1, id).Bind(2, task.role).Bind(3, int64_t{task.index}).Bind(4, event.seq);
  return insert.Bind(5, body).Run();
}

// Not written by Save.
Status SaveSpec(SqlConnection& db, const JobRecord& job) {
  TRY_ASSIGN(Statement update, db.Prepare("UPDATE jobs SET job = ?2 WHERE id = ?1"));
  const std::string text = RecordText(job.job);
  return update.Bind(1, job.id).Bind(2, text).Run();
}

Status ApplyAll(SqlConnection& db, std::span<const Event> events, JobRecord* job) {
  for (Event event : events) {
    event.seq = job->last_seq + 1;
    TRY(ApplyEvent(event, job));
    TRY(InsertEvent(db, job->id, event));
    if (event.type == "task") TRY(UpsertTask(db, job->id, event));
    if (event.type == "resized") TRY(SaveSpec(db, *job));
  }
  return Status::Ok();
}

Status Save(SqlConnection& db, const JobRecord& job) {
  TRY_ASSIGN(Statement update,
             db.Prepare("UPDATE jobs SET state = ?2, ended_flag = ?3, reason = ?4, result = ?5, "
                        "owner_pid = ?6, owner_start = ?7, owner_boot = ?8, started = ?9, "
                        "ended = ?10, last_seq = ?11, lease_epoch = ?12 WHERE id = ?1"));
  const std::string result = RecordText(job.result);
  const std::string reason = ValidUtf8(job.reason);
  const std::string realm = FormatProcessScope(job.owner);
  update.Bind(1, job.id).Bind(2, job::NameOf(job.state));
  update.Bind(3, int64_t{job::IsFinal(job.state)}).Bind(4, reason).Bind(5, result);
  update.Bind(6, job.owner.pid).Bind(7, job.owner.start_ticks).Bind(8, realm);
  update.Bind(9, Micros(job.started)).Bind(10, Micros(job.ended)).Bind(11, job.last_seq);
  return update.Bind(12, job.lease_epoch).Run();
}

Result<JobRecord> Load(SqlConnection& db, const std::string& id) {
  TRY_ASSIGN(Statement select, db.Prepare(fmt::format("{} WHERE id = ?1", kJobColumns)));
  TRY_ASSIGN(const bool found, select.Bind(1, id).Step());
  if (!found) return NotFound("there is no job " + id);
  return RowToJob(select);
}

Status Select(SqlConnection& db, const JobQuery& query, std::vector<JobRecord>* jobs) {
  if (!query.ended && !query.unfinished) return Status::Ok();
  const std::string_view where = query.ended && query.unfinished ? ""
                                 : query.ended                   ? "WHERE ended_flag = 1"
                                                                 : "WHERE ended_flag = 0";
  TRY_ASSIGN(Statement select,
             db.Prepare(fmt::format("{} {} ORDER BY ord DESC LIMIT ?1", kJobColumns, where)));
  select.Bind(1, int64_t{query.limit});
  while (true) {
    TRY_ASSIGN(const bool row, select.Step());
    if (!row) return Status::Ok();
    jobs->push_back(RowToJob(select));
  }
}

Status SelectEvents(SqlConnection& db, const std::string& id, int64_t after, int limit,
                    std::vector<Event>* events) {
  TRY_ASSIGN(Statement select,
             db.Prepare("SELECT seq, time, type, body FROM events WHERE job = ?1 AND seq > ?2 "
                        "ORDER BY seq LIMIT ?3"));
  select.Bind(1, id).Bind(2, after).Bind(3, int64_t{limit});
  while (true) {
    TRY_ASSIGN(const bool row, select.Step());
    if (!row) return Status::Ok();
    Result<json::object> body = ParseJsonObject(select.Text(3));
    if (!body.ok()) body = json::object{{"unreadable", body.status().message()}};
    events->push_back({select.Int(0), Wall(select.Int(1)), select.Text(2), std::move(*body)});
  }
}

// The job whose id begins with `prefix`, or the only unfinished one of several.
Result<JobRecord> FindByPrefix(SqlConnection& db, std::string_view prefix) {
  if (Result<JobRecord> exact = Load(db, std::string(prefix));
      exact.ok() || exact.status().code() != Code::kNotFound) {
    return exact;
  }
  TRY_ASSIGN(Statement select, db.Prepare(fmt::format("{} WHERE substr(id, 1, length(?1)) = ?1 "
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
  TRY_ASSIGN(Statement live, db.Prepare(fmt::format("{} WHERE substr(id, 1, length(?1)) = ?1 AND "
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

// Whether the events after `after` are exactly the given ones, stored by an earlier call whose
// answer was lost.
Result<bool> AreStored(SqlConnection& db, const std::string& id, int64_t after,
                       std::span<const Event> events) {
  std::vector<Event> stored;
  TRY(SelectEvents(db, id, after, static_cast<int>(events.size()), &stored));
  if (stored.size() != events.size()) return false;
  for (size_t i = 0; i < events.size(); ++i) {
    if (stored[i].type != events[i].type || stored[i].time != events[i].time ||
        ToText(stored[i].body) != RecordText(events[i].body))
      return false;
  }
  return true;
}

Event SubmittedEvent(const NewJob& job) {
  Event event{0, job.time, "submitted", {}};
  event.body = {
      {"name", job.name}, {"engine", job.engine}, {"job", job.job}, {"owner", ToJson(job.owner)}};
  if (!job.team.empty()) event.body["team"] = job.team;
  if (!job.user.empty()) event.body["user"] = job.user;
  if (job.labels.empty()) return event;
  json::object& labels = event.body["labels"].emplace_object();
  for (const auto& [name, value] : job.labels) labels[name] = value;
  return event;
}

Status InsertJob(SqlConnection& db, const NewJob& job, int64_t lease_epoch) {
  int64_t ord = 0;
  {
    const std::string text = RecordText(job.job);
    const std::string realm = FormatProcessScope(job.owner);
    const std::string labels = LabelText(job.labels);
    TRY_ASSIGN(Statement insert,
               db.Prepare("INSERT INTO jobs (id, name, state, ended_flag, reason, engine, job, "
                          "result, owner_pid, owner_start, owner_boot, submitted, started, ended, "
                          "last_seq, team, user_name, labels) VALUES (?1, ?2, 'pending', 0, '', "
                          "?3, ?4, '{}', ?5, ?6, ?7, ?8, 0, 0, 0, ?9, ?10, ?11) RETURNING ord"));
    insert.Bind(1, job.id).Bind(2, job.name).Bind(3, job.engine).Bind(4, text);
    insert.Bind(5, job.owner.pid).Bind(6, job.owner.start_ticks).Bind(7, realm);
    insert.Bind(8, Micros(job.time)).Bind(9, job.team).Bind(10, job.user).Bind(11, labels);
    const Result<bool> inserted = insert.Step();
    if (inserted.status().code() == Code::kAlreadyExists)
      return AlreadyExists("there is a job " + job.id + " already");
    TRY(inserted.status());
    ord = insert.Int(0);
    TRY(insert.Step().status());
  }
  for (const auto& [name, value] : job.labels) {
    TRY_ASSIGN(Statement insert,
               db.Prepare("INSERT INTO labels (name, value, ord) VALUES (?1, ?2, ?3)"));
    TRY(insert.Bind(1, name).Bind(2, value).Bind(3, ord).Run());
  }
  JobRecord record;
  record.id = job.id;
  record.lease_epoch = lease_epoch;
  const Event submitted = SubmittedEvent(job);
  TRY(ApplyAll(db, {&submitted, 1}, &record));
  return Save(db, record);
}

class SqlStore final : public Store {
 public:
  SqlStore(std::unique_ptr<SqlDatabase> database, std::string store_id, const Clock* clock)
      : database_(std::move(database)),
        store_id_(std::move(store_id)),
        leases_(database_.get(), clock),
        records_(database_.get(), [this] { return fence(); }),
        audit_(database_.get(), store_id_) {}

  Status Submit(const NewJob& job) override;
  Status Append(const std::string& id, std::span<const Event> events,
                Durability durability) override;
  Status AppendChecked(const std::string& id, std::span<const Event> events, Durability durability,
                       const AppendCheck& check) override;
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
  Result<JobPage> ListPage(const JobFilter& filter, std::string_view after, int limit) override;
  Result<std::vector<StoredEvent>> ReadAllEvents(int64_t after, int limit) override;
  Result<int64_t> LastPosition() override;
  const std::string& store_id() const override { return store_id_; }
  Result<Lease> AcquireLease(const std::string& name, const std::string& holder,
                             Duration ttl) override {
    return leases_.Acquire(name, holder, ttl);
  }
  Result<Lease> RenewLease(const Fence& fence, Duration ttl) override {
    return leases_.Renew(fence, ttl);
  }
  Status ReleaseLease(const Fence& fence) override { return leases_.Release(fence); }
  void SetFence(const Fence& fence) override {
    const MutexLock lock(fence_mu_);
    fence_ = fence;
  }
  Records& records() override { return records_; }
  Audit& audit() override { return audit_; }
  Status Backup(const std::filesystem::path& path) override { return database_->Backup(path); }
  Result<std::unique_ptr<Watcher>> Watch(std::function<void()> on_change) override {
    return database_->Watch(std::move(on_change));
  }
  StoreCounters counters() const override { return database_->counters(); }

 private:
  Fence fence() const {
    const MutexLock lock(fence_mu_);
    return fence_;
  }
  // A change of jobs under a fence. `change` gets the job, whose lease epoch is the fence's.
  using JobChange = std::function<Result<bool>(SqlConnection&, JobRecord*)>;
  Status ChangeJob(const std::string& id, Durability durability, const Fence& fence,
                   const JobChange& change);

  const std::unique_ptr<SqlDatabase> database_;
  const std::string store_id_;
  SqlLeases leases_;
  SqlRecords records_;
  SqlAudit audit_;
  mutable Mutex fence_mu_;
  Fence fence_ GUARDED_BY(fence_mu_);
};

Status SqlStore::Submit(const NewJob& job) {
  TRY(CheckUtf8(job.job));
  for (const std::string* word : {&job.team, &job.user})
    if (!IsUtf8(*word))
      return InvalidArgument("a team or user is not UTF-8: " + EscapedUtf8(*word));
  for (const auto& [name, value] : job.labels)
    if (!IsUtf8(name + value)) return InvalidArgument("a label is not UTF-8: " + EscapedUtf8(name));
  const Fence fence = this->fence();
  return database_->Write(Durability::kSynced, [&](SqlConnection& db) -> Result<bool> {
    TRY(SqlLeases::Check(db, fence));
    TRY(InsertJob(db, job, fence.lease.empty() ? 0 : fence.epoch));
    return true;
  });
}

Status SqlStore::ChangeJob(const std::string& id, Durability durability, const Fence& fence,
                           const JobChange& change) {
  return database_->Write(durability, [&](SqlConnection& db) -> Result<bool> {
    TRY(SqlLeases::Check(db, fence));
    TRY_ASSIGN(JobRecord job, Load(db, id));
    if (!fence.lease.empty()) job.lease_epoch = fence.epoch;
    return change(db, &job);
  });
}

Status SqlStore::Append(const std::string& id, std::span<const Event> events,
                        Durability durability) {
  return AppendChecked(id, events, durability, {});
}

Status SqlStore::AppendChecked(const std::string& id, std::span<const Event> events,
                               Durability durability, const AppendCheck& check) {
  if (events.empty()) return Status::Ok();
  return ChangeJob(id, durability, check.fence.lease.empty() ? fence() : check.fence,
                   [&](SqlConnection& db, JobRecord* job) -> Result<bool> {
                     if (check.after != AppendCheck::kAnySeq && check.after != job->last_seq) {
                       TRY_ASSIGN(const bool stored, AreStored(db, id, check.after, events));
                       if (stored) return false;
                       return Aborted(fmt::format(
                           "the last event of job {} is {}, expected {}: another process "
                           "wrote it; read it again",
                           id, job->last_seq, check.after));
                     }
                     TRY(ApplyAll(db, events, job));
                     TRY(Save(db, *job));
                     return true;
                   });
}

Status SqlStore::AppendDecided(const std::string& id, const Decide& decide, Durability durability) {
  return ChangeJob(id, durability, fence(), [&](SqlConnection& db, JobRecord* job) -> Result<bool> {
    std::vector<JobRecord> unfinished;
    TRY(Select(db, {.ended = false, .limit = INT32_MAX}, &unfinished));
    std::reverse(unfinished.begin(), unfinished.end());
    const std::vector<Event> events = decide(unfinished);
    if (events.empty()) return false;
    TRY(ApplyAll(db, events, job));
    TRY(Save(db, *job));
    return true;
  });
}

Result<bool> SqlStore::ClaimOwnership(const std::string& id, const ProcessIdentity& from,
                                      const ProcessIdentity& to, WallTime time) {
  bool claimed = false;
  const Status done = ChangeJob(id, Durability::kWritten, fence(),
                                [&](SqlConnection& db, JobRecord* job) -> Result<bool> {
                                  claimed = !job::IsFinal(job->state) && job->owner == from;
                                  if (!claimed) return false;
                                  const Event owner{0, time, "owner", ToJson(to)};
                                  TRY(ApplyAll(db, {&owner, 1}, job));
                                  TRY(Save(db, *job));
                                  return true;
                                });
  TRY(done);
  return claimed;
}

Status SqlStore::Remove(const std::string& id) {
  return ChangeJob(id, Durability::kWritten, fence(),
                   [&](SqlConnection& db, JobRecord* job) -> Result<bool> {
                     if (!job::IsFinal(job->state)) {
                       return FailedPrecondition("job " + id + " has not ended, but is " +
                                                 std::string(job::NameOf(job->state)));
                     }
                     for (const char* sql :
                          {"DELETE FROM events WHERE job = ?1", "DELETE FROM tasks WHERE job = ?1",
                           "DELETE FROM jobs WHERE id = ?1"}) {
                       TRY_ASSIGN(Statement remove, db.Prepare(sql));
                       TRY(remove.Bind(1, id).Run());
                     }
                     return true;
                   });
}

Result<std::vector<std::string>> SqlStore::ListExpired(WallTime now) {
  std::vector<std::string> ids;
  const Status done = database_->Read([&](SqlConnection& db) -> Status {
    ids.clear();
    TRY_ASSIGN(Statement select, db.Prepare(database_->dialect().expired_jobs));
    select.Bind(1, Micros(now));
    while (true) {
      TRY_ASSIGN(const bool row, select.Step());
      if (!row) return Status::Ok();
      ids.push_back(select.Text(0));
    }
  });
  TRY(done);
  return ids;
}

Result<JobRecord> SqlStore::GetJob(const std::string& id) {
  Result<JobRecord> job = NotFound("");
  const Status done = database_->Read([&](SqlConnection& db) {
    job = Load(db, id);
    return job.status().code() == Code::kNotFound ? Status::Ok() : job.status();
  });
  TRY(done);
  return job;
}

Result<JobRecord> SqlStore::FindJob(std::string_view prefix) {
  Result<JobRecord> job = NotFound("");
  if (!IsUtf8(prefix)) prefix = "";
  const Status done = database_->Read([&](SqlConnection& db) {
    job = FindByPrefix(db, prefix);
    const Code code = job.status().code();
    const bool answered = code == Code::kNotFound || code == Code::kInvalidArgument;
    return answered ? Status::Ok() : job.status();
  });
  TRY(done);
  return job;
}

Result<std::vector<JobRecord>> SqlStore::ListJobs(const JobQuery& query) {
  std::vector<JobRecord> jobs;
  const Status done = database_->Read([&](SqlConnection& db) {
    jobs.clear();
    return Select(db, query, &jobs);
  });
  TRY(done);
  return jobs;
}

Result<std::vector<TaskRecord>> SqlStore::ListTasks(const std::string& id) {
  std::vector<TaskRecord> tasks;
  const Status done = database_->Read([&](SqlConnection& db) -> Status {
    tasks.clear();
    TRY_ASSIGN(Statement select,
               db.Prepare("SELECT body FROM tasks AS t WHERE job = ?1 ORDER BY (SELECT "
                          "min(first_seq) FROM tasks WHERE job = ?1 AND role = t.role), idx"));
    select.Bind(1, id);
    while (true) {
      TRY_ASSIGN(const bool row, select.Step());
      if (!row) return Status::Ok();
      const Result<json::object> body = ParseJsonObject(select.Text(0));
      Result<TaskRecord> task = body.ok() ? ParseTask(*body) : body.status();
      if (task.ok()) tasks.push_back(std::move(*task));
      if (!task.ok()) LogWarning("skipped a task of job {}: {}", id, task.status().message());
    }
  });
  TRY(done);
  return tasks;
}

Result<std::vector<Event>> SqlStore::ReadEvents(const std::string& id, int64_t after, int limit) {
  std::vector<Event> events;
  const Status done = database_->Read([&](SqlConnection& db) {
    events.clear();
    return SelectEvents(db, id, after, limit, &events);
  });
  TRY(done);
  return events;
}

Result<JobPage> SqlStore::ListPage(const JobFilter& filter, std::string_view after, int limit) {
  TRY(CheckPageLimit(limit));
  TRY(CheckFilter(filter));
  int64_t before = INT64_MAX;
  if (!after.empty()) {
    TRY_ASSIGN(before, ParseCursor(store_id_, after));
  }
  JobPage page;
  const Status done = database_->Read([&](SqlConnection& db) {
    page.jobs.clear();
    return ReadJobs(db, filter, before, limit + 1, &page.jobs);
  });
  TRY(done);
  if (static_cast<int>(page.jobs.size()) > limit) {
    page.jobs.pop_back();
    page.next = FormatCursor(store_id_, page.jobs.back().order);
  }
  return page;
}

Result<std::vector<StoredEvent>> SqlStore::ReadAllEvents(int64_t after, int limit) {
  std::vector<StoredEvent> events;
  const Status done = database_->Read([&](SqlConnection& db) {
    events.clear();
    return ReadStoredEvents(db, database_->dialect(), after, limit, &events);
  });
  TRY(done);
  return events;
}

Result<int64_t> SqlStore::LastPosition() {
  int64_t position = 0;
  const Status done = database_->Read([&](SqlConnection& db) -> Status {
    TRY_ASSIGN(Statement select, db.Prepare(database_->dialect().last_position));
    TRY_ASSIGN(const bool row, select.Step());
    position = row ? select.Int(0) : 0;
    return Status::Ok();
  });
  TRY(done);
  return position;
}

}  // namespace

std::unique_ptr<Store> MakeSqlStore(std::unique_ptr<SqlDatabase> database, std::string store_id,
                                    const Clock* clock) {
  return std::make_unique<SqlStore>(std::move(database), std::move(store_id), clock);
}

}  // namespace shoal::controller
