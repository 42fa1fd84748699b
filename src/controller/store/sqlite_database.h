// SQLite as the database of a store: one connection that writes and a few that read beside it. Used
// by sqlite_store.cc.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"
#include "controller/store/sql/group_commit.h"
#include "controller/store/sql/sql_database.h"
#include "controller/store/sqlite_connection.h"

namespace shoal::controller {

struct SqliteDatabaseOptions {
  std::filesystem::path path;
  std::filesystem::path bell;  // notification file, in the same directory
  int busy_timeout_ms = 0;
  bool readers = true;  // readers on connections of their own (needs a write-ahead log)
};

// Thread-safe. Reads use the writing connection until a read and a write meet for the first time,
// so that a command with one thread opens the file once.
class SqliteDatabase final : public SqlDatabase {
 public:
  // `bell` is the open file options.bell.
  SqliteDatabase(SqliteConnection writer, UniqueFd bell, SqliteDatabaseOptions options);

  Status Write(Durability durability, const Change& change) override;
  Status Read(const Query& read) override;
  const SqlDialect& dialect() const override;
  Result<std::unique_ptr<Store::Watcher>> Watch(std::function<void()> on_change) override;
  Status Backup(const std::filesystem::path& path) override;
  StoreCounters counters() const override { return {synced_, written_}; }

 private:
  void CommitGroup(std::span<PendingChange* const> group);
  // False if the transaction was lost to one of several changes, and nothing happened.
  bool CommitOnce(std::span<PendingChange* const> group) REQUIRES(writer_mu_);
  Status SetDurability(Durability durability) REQUIRES(writer_mu_);
  Status ReadBeside(const Query& read);

  const SqliteDatabaseOptions options_;
  const UniqueFd bell_;  // written to after every commit
  Mutex writer_mu_;
  SqliteConnection writer_ GUARDED_BY(writer_mu_);
  Durability durability_ GUARDED_BY(writer_mu_) = Durability::kSynced;  // of writer_
  std::atomic<bool> contended_{false};  // a read and a write have met
  Mutex readers_mu_;
  CondVar reader_free_;
  std::vector<std::unique_ptr<SqliteConnection>> idle_ GUARDED_BY(readers_mu_);
  int open_ = 0;  // idle and in use; guarded by readers_mu_
  std::atomic<uint64_t> synced_{0};
  std::atomic<uint64_t> written_{0};
  GroupCommit group_;
};

}  // namespace shoal::controller
