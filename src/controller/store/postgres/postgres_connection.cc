#include "controller/store/postgres/postgres_connection.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>
#include <vector>

namespace shoal::controller {
namespace {

constexpr int kOldestServer = 120000;  // PostgreSQL 12

// "?7" becomes "$7". The store's statements contain no other question marks.
std::string WithDollars(std::string_view sql) {
  std::string out(sql);
  for (char& one : out)
    if (one == '?') one = '$';
  return out;
}

// One line of libpq's message.
std::string FirstLine(const char* message) {
  std::string text = message == nullptr ? "" : message;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& one : text)
    if (one == '\n') one = ' ';
  return text;
}

// Settings of the store's sessions. A process that was stopped within a transaction must not keep
// others from writing, so the database ends such a session.
constexpr const char* kSession =
    "SET client_encoding = 'UTF8'; SET idle_in_transaction_session_timeout = '3s'; "
    "SET lock_timeout = '20s'; SET search_path = shoal; SET client_min_messages = warning";

}  // namespace

bool IsTransient(const Status& status) { return status.code() == Code::kUnavailable; }

Result<std::string> PostgresName(const std::string& url) {
  TRY_ASSIGN(const PqLibrary* pq, Pq());
  char* error = nullptr;
  PQconninfoOption* const options = pq->conninfoParse(url.c_str(), &error);
  if (error != nullptr) pq->freemem(error);  // may contain the password
  if (options == nullptr) {
    return InvalidArgument(
        "the store's URL cannot be read; expected postgres://USER@HOST:PORT/DATABASE, with "
        "special characters as %XX");
  }
  std::string host = "localhost";
  std::string port = "5432";
  std::string database;
  for (const PQconninfoOption* one = options; one->keyword != nullptr; ++one) {
    if (one->val == nullptr) continue;
    const std::string_view keyword = one->keyword;
    if (keyword == "host") host = one->val;
    if (keyword == "port") port = one->val;
    if (keyword == "dbname") database = one->val;
  }
  pq->conninfoFree(options);
  return "postgres://" + host + ":" + port + "/" + database;
}

// A statement with its parameters, and all rows of its result after the first Step.
class PostgresCursor final : public SqlCursor {
 public:
  PostgresCursor(PostgresConnection* connection, std::string name)
      : connection_(connection), pq_(connection->pq_), name_(std::move(name)) {}
  ~PostgresCursor() override {
    if (result_ != nullptr) pq_->clear(result_);
  }

  void BindText(int at, std::string_view text) override {
    std::string value;
    value.reserve(text.size());
    for (const char one : text) {
      // PostgreSQL stores no null bytes.
      if (one == '\0') value += "\xef\xbf\xbd";
      if (one != '\0') value += one;
    }
    Set(at, std::move(value));
  }
  void BindInt(int at, int64_t value) override { Set(at, std::to_string(value)); }

  Result<bool> Step() override {
    if (result_ == nullptr) TRY(Run());
    return ++row_ < pq_->ntuples(result_);
  }
  std::string Text(int column) const override {
    return {pq_->getvalue(result_, row_, column),
            static_cast<size_t>(pq_->getlength(result_, row_, column))};
  }
  int64_t Int(int column) const override {
    int64_t value = 0;
    const char* const text = pq_->getvalue(result_, row_, column);
    std::from_chars(text, text + pq_->getlength(result_, row_, column), value);
    return value;
  }

 private:
  void Set(int at, std::string value) {
    if (values_.size() < static_cast<size_t>(at)) values_.resize(static_cast<size_t>(at));
    values_[static_cast<size_t>(at) - 1] = std::move(value);
  }
  Status Run() {
    std::vector<const char*> pointers;
    for (const std::string& value : values_) pointers.push_back(value.c_str());
    result_ =
        pq_->execPrepared(connection_->connection_, name_.c_str(),
                          static_cast<int>(pointers.size()), pointers.data(), nullptr, nullptr, 0);
    const ExecStatusType status = pq_->resultStatus(result_);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return Status::Ok();
    return connection_->ErrorOf(result_);
  }

  PostgresConnection* const connection_;
  const PqLibrary* const pq_;
  const std::string name_;  // of the prepared statement
  std::vector<std::string> values_;
  PGresult* result_ = nullptr;
  int row_ = -1;
};

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::Open(const std::string& url) {
  TRY_ASSIGN(const PqLibrary* pq, Pq());
  TRY_ASSIGN(std::string name, PostgresName(url));
  // What stands before the URL is a default that the URL may change.
  constexpr const char* kNames[] = {"connect_timeout",  "keepalives_idle",  "keepalives_interval",
                                    "keepalives_count", "tcp_user_timeout", "gssencmode",
                                    "application_name", "dbname",           nullptr};
  const char* const values[] = {"5",       "5",     "2",         "3",    "10000",
                                "disable", "shoal", url.c_str(), nullptr};
  PGconn* const raw = pq->connectdbParams(kNames, values, 1);
  std::unique_ptr<PostgresConnection> connection(new PostgresConnection(pq, raw, std::move(name)));
  if (pq->status(raw) != CONNECTION_OK) {
    return Unavailable(fmt::format(
        "{}: cannot be reached ({}); does the database run, and does it admit this user?",
        connection->name_, FirstLine(pq->errorMessage(raw))));
  }
  // libpq prints notices to stderr unless told otherwise. Errors come back with their call.
  pq->setNoticeProcessor(
      raw, [](void*, const char*) {}, nullptr);
  TRY(connection->Check());
  TRY(connection->Execute(kSession));
  return connection;
}

PostgresConnection::~PostgresConnection() { pq_->finish(connection_); }

Status PostgresConnection::Check() {
  const int version = pq_->serverVersion(connection_);
  if (version < kOldestServer) {
    return FailedPrecondition(
        fmt::format("{}: is PostgreSQL {}, expected 12 or later", name_, version / 10000));
  }
  const char* const encoding = pq_->parameterStatus(connection_, "server_encoding");
  if (encoding == nullptr || std::string_view(encoding) != "UTF8") {
    return FailedPrecondition(
        fmt::format("{}: has the encoding {}, expected UTF8; create a database with ENCODING "
                    "'UTF8' TEMPLATE template0",
                    name_, encoding == nullptr ? "unknown" : encoding));
  }
  return Status::Ok();
}

Status PostgresConnection::ErrorOf(const PGresult* result) {
  const char* const field =
      result == nullptr ? nullptr : pq_->resultErrorField(result, PG_DIAG_SQLSTATE);
  const std::string_view state = field == nullptr ? "" : field;
  const std::string text = FirstLine(result == nullptr ? pq_->errorMessage(connection_)
                                                       : pq_->resultErrorMessage(result));
  // Errors of libpq itself, which have no state, and connection errors; the database stops, starts
  // or ended an idle transaction; serialization failure and deadlock; a lock that was not free in
  // time.
  const bool transient = IsLost() || state.empty() || state.substr(0, 2) == "08" ||
                         state.substr(0, 3) == "57P" || state == "25P03" || state == "40001" ||
                         state == "40P01" || state == "55P03" || state == "53300";
  lost_ = lost_ || state.empty();
  if (transient) return Unavailable(fmt::format("{}: {}", name_, text));
  if (state == "23505") return AlreadyExists(fmt::format("{}: {}", name_, text));
  if (state.substr(0, 2) == "53") {
    return ResourceExhausted(fmt::format(
        "{}: {}; free space or memory on the database's host and try again", name_, text));
  }
  if (state == "25006") {
    return FailedPrecondition(fmt::format(
        "{}: {}: this server is a standby; give the URL of the primary, or several hosts with "
        "target_session_attrs=read-write",
        name_, text));
  }
  if (state == "42501") {
    return PermissionDenied(fmt::format(
        "{}: {}; GRANT CREATE ON DATABASE to the user, or make the user its owner", name_, text));
  }
  return Internal(fmt::format("{}: {}", name_, text));
}

Status PostgresConnection::Execute(const char* sql) {
  PGresult* const result = pq_->exec(connection_, sql);
  const ExecStatusType status = pq_->resultStatus(result);
  Status done;
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) done = ErrorOf(result);
  pq_->clear(result);
  return done;
}

Result<Statement> PostgresConnection::Prepare(std::string_view sql) {
  std::string& name = prepared_[std::string(sql)];
  if (name.empty()) {
    std::string made = "s" + std::to_string(++statements_);
    PGresult* const result =
        pq_->prepare(connection_, made.c_str(), WithDollars(sql).c_str(), 0, nullptr);
    const Status done =
        pq_->resultStatus(result) == PGRES_COMMAND_OK ? Status::Ok() : ErrorOf(result);
    pq_->clear(result);
    if (!done.ok()) {
      prepared_.erase(std::string(sql));
      return done;
    }
    name = std::move(made);
  }
  return Statement(std::make_unique<PostgresCursor>(this, name));
}

bool PostgresConnection::IsLost() const {
  return lost_ || pq_->status(connection_) != CONNECTION_OK;
}

bool PostgresConnection::InTransaction() const {
  const PGTransactionStatusType status = pq_->transactionStatus(connection_);
  return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

int PostgresConnection::socket() const { return pq_->socket(connection_); }

bool PostgresConnection::TakeNotifications() {
  pq_->consumeInput(connection_);
  bool any = false;
  while (PGnotify* const one = pq_->notifies(connection_)) {
    pq_->freemem(one);
    any = true;
  }
  return any;
}

}  // namespace shoal::controller
