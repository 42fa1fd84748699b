#include "controller/store/postgres/postgres_database.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/id.h"
#include "base/mutex.h"
#include "controller/store/postgres/postgres_schema.h"
#include "controller/store/postgres/postgres_watch.h"

namespace shoal::controller {
namespace {

constexpr int kMostReaders = 8;
constexpr std::chrono::milliseconds kPause{50};  // between attempts to connect

constexpr SqlDialect kDialect{
    .expired_jobs =
        "SELECT id FROM jobs WHERE ended_flag = 1 AND "
        "(job::json #>> '{limits,keep_records_ms}')::bigint > 0 AND ended + 1000 * "
        "(job::json #>> '{limits,keep_records_ms}')::bigint <= ?1 ORDER BY ended",
    .all_events =
        "SELECT e.position, jobs.id, jobs.team, e.seq, e.time, e.type, e.body "
        "FROM events AS e JOIN jobs ON jobs.id = e.job "
        "WHERE e.position > ?1 ORDER BY e.position LIMIT ?2",
    .last_position = "SELECT coalesce(max(position), 0) FROM events",
    .now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
    .on_lease = nullptr,
};

constexpr SqlDialect kCallersClock = [] {
  SqlDialect dialect = kDialect;
  dialect.now = nullptr;
  return dialect;
}();

// Repeats `attempt` while its error is transient and the patience lasts.
template <typename Attempt>
Status Repeat(Duration patience, const Attempt& attempt) {
  const TimePoint end = RealClock::Get()->Now() + patience;
  while (true) {
    Status status = attempt();
    if (!IsTransient(status) || RealClock::Get()->Now() >= end) return status;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

PostgresDatabase::PostgresDatabase(std::string url, std::unique_ptr<PostgresConnection> writer,
                                   const PostgresOptions& options)
    : url_(std::move(url)),
      name_(writer->name()),
      writer_id_(RandomHex(16)),
      options_(options),
      writer_(std::move(writer)),
      group_([this](std::span<PendingChange* const> group) { CommitGroup(group); }) {}

const SqlDialect& PostgresDatabase::dialect() const {
  return options_.lease_clock == nullptr ? kDialect : kCallersClock;
}

Status PostgresDatabase::Write(Durability durability, const Change& change) {
  return group_.Do(durability, change);
}

void PostgresDatabase::CommitGroup(std::span<PendingChange* const> group) {
  std::optional<int64_t> sent;
  Status done = Repeat(options_.patience, [&] { return CommitOnce(group, &sent); });
  if (done.ok()) return;
  if (sent) {
    done = Status(done.code(), done.message() +
                                   "; the connection was lost in a commit, so it is not known "
                                   "whether the change was stored: look before repeating it");
  }
  for (PendingChange* one : group)
    if (one->status.ok() || IsTransient(one->status)) one->status = done;
}

Status PostgresDatabase::CommitOnce(std::span<PendingChange* const> group,
                                    std::optional<int64_t>* sent) {
  if (writer_ == nullptr || writer_->IsLost()) {
    writer_.reset();
    TRY_ASSIGN(writer_, PostgresConnection::Open(url_));
  }
  const Status done = ExecuteAndCommit(group, sent);
  if (!writer_->IsLost() && writer_->InTransaction() && !writer_->Execute("ROLLBACK").ok())
    writer_.reset();
  return done;
}

Status PostgresDatabase::ExecuteAndCommit(std::span<PendingChange* const> group,
                                          std::optional<int64_t>* sent) {
  // Waits for the end of the transaction whose COMMIT was sent, if it still runs.
  TRY(writer_->Execute(kBeginWriting));
  const auto count = [&] {
    const bool synced = std::any_of(group.begin(), group.end(), [](const PendingChange* one) {
      return one->changed && one->durability == Durability::kSynced;
    });
    ++(synced ? synced_ : written_);
  };
  if (*sent) {
    TRY_ASSIGN(const bool committed, IsCommitted(**sent));
    sent->reset();
    if (committed) {
      count();
      return Status::Ok();
    }
  }
  const GroupOutcome outcome =
      ExecuteGroup(*writer_, group, [this] { return writer_->InTransaction(); });
  for (const PendingChange* one : group)
    if (IsTransient(one->status)) return one->status;
  if (outcome.lost) return Unavailable(name_ + ": the connection was lost");
  if (!outcome.changed) return Status::Ok();
  // One round trip. Every commit is synced: others take over this one's jobs when its host dies.
  *sent = ++batch_;
  const std::string commit = fmt::format(
      "INSERT INTO writers VALUES ('{}', {}, now()) ON CONFLICT (writer) DO UPDATE SET "
      "batch = excluded.batch, at = excluded.at; NOTIFY {}; COMMIT",
      writer_id_, batch_, kNotificationChannel);
  const Status committed = writer_->Execute(commit.c_str());
  if (!IsTransient(committed)) sent->reset();
  if (committed.ok()) count();
  return committed;
}

Result<bool> PostgresDatabase::IsCommitted(int64_t number) {
  TRY_ASSIGN(Statement select, writer_->Prepare("SELECT batch FROM writers WHERE writer = ?1"));
  TRY_ASSIGN(const bool row, select.Bind(1, writer_id_).Step());
  return row && select.Int(0) == number;
}

Status PostgresDatabase::Read(const Query& read) {
  return Repeat(options_.patience, [&] { return ReadOnce(read); });
}

Status PostgresDatabase::ReadOnce(const Query& read) {
  std::unique_ptr<PostgresConnection> reader;
  {
    MutexLock lock(readers_mu_);
    reader_free_.wait(
        lock, [this]() REQUIRES(readers_mu_) { return !idle_.empty() || open_ < kMostReaders; });
    if (!idle_.empty()) {
      reader = std::move(idle_.back());
      idle_.pop_back();
    } else {
      ++open_;
    }
  }
  Status status;
  if (reader == nullptr) {
    Result<std::unique_ptr<PostgresConnection>> opened = PostgresConnection::Open(url_);
    status = opened.status();
    if (opened.ok()) reader = std::move(*opened);
  }
  if (reader != nullptr) status = read(*reader);
  if (reader != nullptr && reader->IsLost()) reader.reset();
  const MutexLock lock(readers_mu_);
  // After the loss of one, the others are not expected to be better.
  if (reader == nullptr) open_ -= 1 + static_cast<int>(std::exchange(idle_, {}).size());
  if (reader != nullptr) idle_.push_back(std::move(reader));
  reader_free_.notify_all();
  return status;
}

Result<std::unique_ptr<Store::Watcher>> PostgresDatabase::Watch(std::function<void()> on_change) {
  return WatchPostgres(url_, std::move(on_change));
}

Status PostgresDatabase::Backup(const std::filesystem::path& path) {
  return Unimplemented(fmt::format(
      "a store in PostgreSQL is copied by PostgreSQL: pg_dump --format=custom --schema=shoal "
      "--file={} {}",
      path.string(), name_));
}

}  // namespace shoal::controller
