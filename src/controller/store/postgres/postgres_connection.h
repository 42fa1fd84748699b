// Connections to PostgreSQL. Used by postgres_database.cc, postgres_schema.cc and
// postgres_watch.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/status.h"
#include "controller/store/postgres/pq_library.h"
#include "controller/store/sql/sql_database.h"

namespace shoal::controller {

// A connection. Prepares each statement once. Not thread-safe.
class PostgresConnection final : public SqlConnection {
 public:
  // Connects within 5 s. `url`: as libpq takes it; errors show it without its password. Unavailable
  // if the database does not answer; FailedPrecondition if it cannot serve as a store.
  static Result<std::unique_ptr<PostgresConnection>> Open(const std::string& url);
  ~PostgresConnection() override;

  Status Execute(const char* sql) override;
  Result<Statement> Prepare(std::string_view sql) override;

  // The connection is gone; a transaction that it was in has not been committed unless COMMIT was
  // being sent.
  bool IsLost() const;
  // In a transaction, which may have failed.
  bool InTransaction() const;
  int socket() const;
  // Takes what has arrived, and says whether there was a notification (LISTEN).
  bool TakeNotifications();
  // "postgres://host:5432/database", for messages.
  const std::string& name() const { return name_; }

 private:
  friend class PostgresCursor;
  PostgresConnection(const PqLibrary* pq, PGconn* connection, std::string name)
      : pq_(pq), connection_(connection), name_(std::move(name)) {}
  Status Check();  // that the database can serve as a store
  // The error in `result`, or of the connection.
  Status ErrorOf(const PGresult* result);

  const PqLibrary* const pq_;
  PGconn* const connection_;
  const std::string name_;
  std::unordered_map<std::string, std::string> prepared_;  // names of statements by their text
  bool lost_ = false;       // an error of libpq; its status may not show it yet
  int64_t statements_ = 0;  // named so far
};

// Whether the call may succeed on another connection: this one is lost, or the database is starting
// or refused the transaction for the sake of others.
bool IsTransient(const Status& status);

// The URL without password and parameters: "postgres://host:5432/database". InvalidArgument if
// libpq cannot read it; the message does not contain it.
Result<std::string> PostgresName(const std::string& url);

}  // namespace shoal::controller
