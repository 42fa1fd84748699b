// What the store needs of a database: transactions that share commits, reads beside them, and
// statements. Implemented by sqlite_database.h and postgres/postgres_database.h, used by
// sql_store.cc and its parts, which contain the SQL.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "controller/store/store.h"

namespace shoal::controller {

// A prepared statement while it runs.
class SqlCursor {
 public:
  virtual ~SqlCursor() = default;
  virtual void BindText(int at, std::string_view text) = 0;
  virtual void BindInt(int at, int64_t value) = 0;
  virtual Result<bool> Step() = 0;
  virtual std::string Text(int column) const = 0;
  virtual int64_t Int(int column) const = 0;
};

// Owns a cursor. Parameters (?1, ?2, …) count from 1, columns from 0. Must not outlive its
// connection.
class Statement {
 public:
  explicit Statement(std::unique_ptr<SqlCursor> cursor) : cursor_(std::move(cursor)) {}

  // Binds a parameter. The text must live until the last Step.
  Statement& Bind(int at, std::string_view text) {
    cursor_->BindText(at, text);
    return *this;
  }
  Statement& Bind(int at, int64_t value) {
    cursor_->BindInt(at, value);
    return *this;
  }
  // Advances to the next row; false when there are no more.
  Result<bool> Step() { return cursor_->Step(); }
  // Executes a statement that returns no rows.
  Status Run();
  std::string Text(int column) const { return cursor_->Text(column); }
  int64_t Int(int column) const { return cursor_->Int(column); }

 private:
  std::unique_ptr<SqlCursor> cursor_;
};

// One connection. Not thread-safe.
class SqlConnection {
 public:
  virtual ~SqlConnection() = default;
  // Statements without parameters and rows, separated by ';'.
  virtual Status Execute(const char* sql) = 0;
  // A statement with parameters ?1, ?2, … AlreadyExists from Step: a UNIQUE constraint.
  virtual Result<Statement> Prepare(std::string_view sql) = 0;
};

// Where the two databases differ.
struct SqlDialect {
  const char* expired_jobs;   // ids of the jobs that expired by ?1, oldest first
  const char* all_events;     // position, job, team, seq, time, type, body; ?1: after, ?2: limit
  const char* last_position;  // the newest event's
  const char* now;            // the database's time in µs since the epoch; null: the caller's
  const char* on_lease;       // run before the store's first lease is taken; null: nothing
};

// Thread-safe.
class SqlDatabase {
 public:
  virtual ~SqlDatabase() = default;

  // Part of a transaction: true if it is to be committed, false if it changed nothing. An error
  // undoes what it changed. Called while no other process writes, possibly on the thread of another
  // caller, and again if the transaction could not be committed for the sake of another part or a
  // lost connection.
  using Change = std::function<Result<bool>(SqlConnection&)>;
  // Runs `change` and commits. Callers that wait at the same time share one commit.
  virtual Status Write(Durability durability, const Change& change) = 0;

  // Runs `read` on a connection of its own, which sees every commit before the call.
  using Query = std::function<Status(SqlConnection&)>;
  virtual Status Read(const Query& read) = 0;

  virtual const SqlDialect& dialect() const = 0;
  virtual Result<std::unique_ptr<Store::Watcher>> Watch(std::function<void()> on_change) = 0;
  virtual Status Backup(const std::filesystem::path& path) = 0;
  virtual StoreCounters counters() const = 0;
};

}  // namespace shoal::controller
