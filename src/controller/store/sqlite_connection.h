// SQLite's connection and statements as owned objects with our errors. Used by sqlite_store.cc
// only.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace shoal::controller {

// One prepared statement in use: binds from 1, steps, reads columns from 0. Resets itself.
class Statement {
 public:
  Statement(sqlite3* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  Statement(Statement&& other) noexcept : db_(other.db_), statement_(other.statement_) {
    other.statement_ = nullptr;
  }
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // The text must live until the last Step.
  Statement& Bind(int at, std::string_view text);
  Statement& Bind(int at, int64_t value);
  // True: a row is there. False: done.
  Result<bool> Step();
  // For statements without rows.
  Status Run();
  std::string Text(int column) const;
  int64_t Int(int column) const;

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_;
};

// What is said when others keep a file for longer than anybody waits.
Status LockedTooLong(const std::string& file);

// A connection. Not thread-safe.
class SqliteConnection {
 public:
  static Result<SqliteConnection> Open(const std::filesystem::path& path, int busy_timeout_ms);
  Status Execute(const char* sql);
  Result<Statement> Prepare(std::string_view sql);

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  std::unique_ptr<sqlite3, Close> db_;
};

// BEGIN IMMEDIATE; rolls back when destroyed before Commit.
class Transaction {
 public:
  static Result<Transaction> Begin(SqliteConnection* db);
  Transaction(Transaction&& other) noexcept : db_(other.db_) { other.db_ = nullptr; }
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status Commit();

 private:
  explicit Transaction(SqliteConnection* db) : db_(db) {}
  SqliteConnection* db_;
};

// The sentence for an SQLite result: what happened, what to do.
Status SqliteStatus(sqlite3* db, int result);

}  // namespace shoal::controller
