// SQLite as the database of a store: one connection that writes and a few that read beside it. Used
// by sqlite_store.cc.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/file.h"
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
  bool CommitOnce(std::span<PendingChange* const> group);
  Status SetDurability(Durability durability);
  Status ReadBeside(const Query& read);

  const SqliteDatabaseOptions options_;
  const UniqueFd bell_;  // written to after every commit
  std::mutex writer_mu_;
  SqliteConnection writer_;                      // guarded by writer_mu_
  Durability durability_ = Durability::kSynced;  // of writer_; guarded by writer_mu_
  std::atomic<bool> contended_{false};           // a read and a write have met
  std::mutex readers_mu_;
  std::condition_variable reader_free_;
  std::vector<std::unique_ptr<SqliteConnection>> idle_;  // guarded by readers_mu_
  int open_ = 0;                                         // idle and in use; guarded by readers_mu_
  std::atomic<uint64_t> synced_{0};
  std::atomic<uint64_t> written_{0};
  GroupCommit group_;
};

}  // namespace shoal::controller
