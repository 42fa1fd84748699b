// PostgreSQL as the database of a store: one connection that writes and a few that read. Used by
// postgres_store.cc.
//
// A lost connection is opened again and the call repeated, for as long as the patience lasts. Each
// commit stores its number with the writer's name, so a writer whose connection was lost in a
// commit knows whether it happened, and no event is stored twice.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "controller/store/postgres/postgres_connection.h"
#include "controller/store/postgres/postgres_store.h"
#include "controller/store/sql/group_commit.h"
#include "controller/store/sql/sql_database.h"

namespace shoal::controller {

// Thread-safe.
class PostgresDatabase final : public SqlDatabase {
 public:
  // `writer`: a connection to `url` that has the tables.
  PostgresDatabase(std::string url, std::unique_ptr<PostgresConnection> writer,
                   const PostgresOptions& options);

  Status Write(Durability durability, const Change& change) override;
  Status Read(const Query& read) override;
  const SqlDialect& dialect() const override;
  Result<std::unique_ptr<Store::Watcher>> Watch(std::function<void()> on_change) override;
  Status Backup(const std::filesystem::path& path) override;
  StoreCounters counters() const override { return {synced_, written_}; }

 private:
  void CommitGroup(std::span<PendingChange* const> group);
  // One attempt. `sent`: the number of an earlier attempt whose COMMIT may have arrived.
  Status CommitOnce(std::span<PendingChange* const> group, std::optional<int64_t>* sent);
  Status ExecuteAndCommit(std::span<PendingChange* const> group, std::optional<int64_t>* sent);
  // Within a transaction: whether the commit with this number happened.
  Result<bool> IsCommitted(int64_t number);
  Status ReadOnce(const Query& read);

  const std::string url_;
  const std::string name_;       // without the password
  const std::string writer_id_;  // random
  const PostgresOptions options_;
  std::unique_ptr<PostgresConnection> writer_;  // of the caller in CommitGroup, as is the next
  int64_t batch_ = 0;                           // number of the last commit
  Mutex readers_mu_;
  CondVar reader_free_;
  std::vector<std::unique_ptr<PostgresConnection>> idle_ GUARDED_BY(readers_mu_);
  int open_ = 0;  // idle and in use; likewise
  std::atomic<uint64_t> synced_{0};
  std::atomic<uint64_t> written_{0};
  GroupCommit group_;
};

}  // namespace shoal::controller
