#include "controller/store/sqlite_database.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "controller/store/file_watch.h"

namespace shoal::controller {
namespace {

constexpr int kMostReaders = 8;

constexpr SqlDialect kDialect{
    .expired_jobs =
        "SELECT id FROM jobs WHERE ended_flag = 1 AND "
        "json_extract(job, '$.limits.keep_records_ms') > 0 AND ended + 1000 * "
        "json_extract(job, '$.limits.keep_records_ms') <= ?1 ORDER BY ended",
    .all_events =
        "SELECT p.position, jobs.id, jobs.team, e.seq, e.time, e.type, e.body "
        "FROM positions AS p CROSS JOIN jobs ON jobs.ord = p.ord "
        "CROSS JOIN events AS e ON e.job = jobs.id AND e.seq = p.seq "
        "WHERE p.position > ?1 ORDER BY p.position LIMIT ?2",
    .last_position = "SELECT coalesce(max(position), 0) FROM positions",
    .now = nullptr,
    .on_lease = "PRAGMA user_version = 2",
};

}  // namespace

SqliteDatabase::SqliteDatabase(SqliteConnection writer, UniqueFd bell,
                               SqliteDatabaseOptions options)
    : options_(std::move(options)),
      bell_(std::move(bell)),
      writer_(std::move(writer)),
      group_([this](std::span<PendingChange* const> group) { CommitGroup(group); }) {}

const SqlDialect& SqliteDatabase::dialect() const { return kDialect; }

Status SqliteDatabase::Write(Durability durability, const Change& change) {
  return group_.Do(durability, change);
}

void SqliteDatabase::CommitGroup(std::span<PendingChange* const> group) {
  if (!writer_mu_.try_lock()) {
    contended_ = true;
    writer_mu_.lock();
  }
  const MutexLock lock(writer_mu_, std::adopt_lock);
  if (CommitOnce(group)) return;
  for (PendingChange* const& one : group) CommitOnce({&one, 1});
}

bool SqliteDatabase::CommitOnce(std::span<PendingChange* const> group) {
  const auto fail = [&](const Status& status) {
    for (PendingChange* one : group)
      if (one->status.ok()) one->status = status;
    return true;
  };
  for (PendingChange* one : group) one->status = Status::Ok();
  const bool synced = std::any_of(group.begin(), group.end(), [](const PendingChange* one) {
    return one->durability == Durability::kSynced;
  });
  if (const Status set = SetDurability(synced ? Durability::kSynced : Durability::kWritten);
      !set.ok())
    return fail(set);
  Result<Transaction> transaction = Transaction::Begin(&writer_);
  if (!transaction.ok()) return fail(transaction.status());
  const GroupOutcome outcome = ExecuteGroup(
      writer_, group, [this]() REQUIRES(writer_mu_) { return writer_.InTransaction(); });
  if (outcome.lost) return group.size() == 1;
  if (!outcome.changed) return true;
  if (const Status committed = transaction->Commit(); !committed.ok()) return fail(committed);
  ++(synced ? synced_ : written_);
  // The write-ahead log cannot serve as the notification: it changes before the commit is visible.
  (void)WriteAllAt(bell_.get(), "\n", 0);
  return true;
}

Status SqliteDatabase::SetDurability(Durability durability) {
  if (durability == durability_) return Status::Ok();
  // In WAL mode NORMAL writes the commit without a sync; the next FULL commit syncs both.
  TRY(writer_.Execute(durability == Durability::kSynced ? "PRAGMA synchronous = FULL"
                                                        : "PRAGMA synchronous = NORMAL"));
  durability_ = durability;
  return Status::Ok();
}

Status SqliteDatabase::Read(const Query& read) {
  if (options_.readers && contended_) return ReadBeside(read);
  if (!writer_mu_.try_lock()) {
    contended_ = true;
    if (options_.readers) return ReadBeside(read);
    writer_mu_.lock();
  }
  const MutexLock lock(writer_mu_, std::adopt_lock);
  return read(writer_);
}

Status SqliteDatabase::ReadBeside(const Query& read) {
  std::unique_ptr<SqliteConnection> reader;
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
    Result<SqliteConnection> opened =
        SqliteConnection::Open(options_.path, options_.busy_timeout_ms);
    if (opened.ok()) reader = std::make_unique<SqliteConnection>(std::move(*opened));
    status = opened.status();
  }
  if (reader != nullptr) status = read(*reader);
  const MutexLock lock(readers_mu_);
  if (reader == nullptr) --open_;
  if (reader != nullptr) idle_.push_back(std::move(reader));
  reader_free_.notify_one();
  return status;
}

Result<std::unique_ptr<Store::Watcher>> SqliteDatabase::Watch(std::function<void()> on_change) {
  class FileWatcher final : public Store::Watcher {
   public:
    explicit FileWatcher(std::unique_ptr<FileWatch> watch) : watch_(std::move(watch)) {}

   private:
    std::unique_ptr<FileWatch> watch_;
  };
  TRY_ASSIGN(auto watch, FileWatch::Start(options_.bell.parent_path(),
                                          options_.bell.filename().string(), std::move(on_change)));
  return std::unique_ptr<Store::Watcher>(std::make_unique<FileWatcher>(std::move(watch)));
}

Status SqliteDatabase::Backup(const std::filesystem::path& path) {
  // Fails if the file exists. Only its owner may read it.
  TRY_ASSIGN(const UniqueFd file, OpenFile(path, O_RDWR | O_CREAT | O_EXCL, 0600));
  TRY_ASSIGN(SqliteConnection from,
             SqliteConnection::Open(options_.path, options_.busy_timeout_ms));
  Status copied = from.CopyTo(path);
  if (copied.ok() && ::fsync(file.get()) != 0) copied = ErrnoStatus(errno, path.string());
  if (copied.ok()) copied = SyncDirectory(path.has_parent_path() ? path.parent_path() : ".");
  if (!copied.ok()) ::unlink(path.c_str());
  return copied;
}

}  // namespace shoal::controller
