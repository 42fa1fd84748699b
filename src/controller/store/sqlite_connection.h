// SQLite connections and their statements with Status errors. Used by sqlite_database.cc,
// sqlite_schema.cc and sqlite_check.cc.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "controller/store/sql/sql_database.h"

struct sqlite3;

namespace shoal::controller {

// The error after the busy timeout, when other processes hold the file locked.
Status LockedTooLong(const std::string& file);

// A database connection. Keeps the statements that it has prepared. Not thread-safe.
class SqliteConnection final : public SqlConnection {
 public:
  static Result<SqliteConnection> Open(const std::filesystem::path& path, int busy_timeout_ms);
  SqliteConnection(SqliteConnection&&) noexcept;
  ~SqliteConnection() override;

  Status Execute(const char* sql) override;
  Result<Statement> Prepare(std::string_view sql) override;
  // False after COMMIT, ROLLBACK, and errors that end a transaction.
  bool InTransaction() const;
  // Copies the whole database, as of now, into the empty file `path`.
  Status CopyTo(const std::filesystem::path& path);

 private:
  struct State;
  explicit SqliteConnection(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
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
