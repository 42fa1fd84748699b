// RAII wrappers for SQLite connections and statements with Status errors. Used by sqlite_store.cc
// and sqlite_check.cc.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace shoal::controller {

// A prepared statement in use: parameters count from 1, columns from 0. The destructor resets it.
// Must not outlive its connection.
class Statement {
 public:
  Statement(sqlite3* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  Statement(Statement&& other) noexcept : db_(other.db_), statement_(other.statement_) {
    other.statement_ = nullptr;
  }
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // Binds a parameter. The text must live until the last Step.
  Statement& Bind(int at, std::string_view text);
  Statement& Bind(int at, int64_t value);
  // Advances to the next row; false when there are no more.
  Result<bool> Step();
  // Executes a statement that returns no rows.
  Status Run();
  std::string Text(int column) const;
  int64_t Int(int column) const;

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_;
};

// The error after the busy timeout, when other processes hold the file locked.
Status LockedTooLong(const std::string& file);

// A database connection. Not thread-safe.
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

// A transaction (BEGIN IMMEDIATE). The destructor rolls back unless Commit succeeded.
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

// Converts an SQLite result code to a Status that says what failed and what to do.
Status SqliteStatus(sqlite3* db, int result);

}  // namespace shoal::controller
