#include "controller/store/sqlite_connection.h"

#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/fault_injection.h"
#include "base/mutex.h"

namespace shoal::controller {

namespace {

// " (Input/output error)"; empty for 0.
std::string SystemError(int error) {
  return error == 0 ? "" : " (" + std::generic_category().message(error) + ")";
}

// The code for a file that could not be opened with this error. SQLite reports the error of its
// last attempt, which after a temporary EIO may be any; permanent errors keep their code.
Code CannotOpenCode(int error) {
  for (const int lasting : {0, EACCES, EPERM, EROFS, EISDIR, ENOTDIR, ELOOP, EMFILE, ENFILE})
    if (error == lasting) return Code::kFailedPrecondition;
  return Code::kUnknown;
}

}  // namespace

Status LockedTooLong(const std::string& file) {
  return FailedPrecondition(file +
                            ": another program holds the file locked for too long; find it with "
                            "`fuser` and try again");
}

// Only errors with a known remedy get a sentence of their own.
Status SqliteStatus(sqlite3* db, int result) {
  const char* name = db == nullptr ? nullptr : sqlite3_db_filename(db, "main");
  const std::string file = name == nullptr || *name == 0 ? "shoal.db" : name;
  switch (result & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
      return Status::Ok();
    case SQLITE_FULL:
      return ResourceExhausted(file +
                               ": the disk is full, so the state of jobs cannot be saved; "
                               "free some space and try again");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return DataLoss(file +
                      ": the file is damaged or not a database; move it away (its job "
                      "records are lost) and try again");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return LockedTooLong(file);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return PermissionDenied(file +
                              ": the state of jobs cannot be written: permission denied; "
                              "set SHOAL_HOME to a writable directory");
    case SQLITE_CANTOPEN: {
      const int error = db == nullptr ? 0 : sqlite3_system_errno(db);
      return {CannotOpenCode(error), file + ": cannot be opened" + SystemError(error) +
                                         "; does its directory exist, and is it writable? "
                                         "If not, set SHOAL_HOME to another one"};
    }
    case SQLITE_IOERR:
      return {Code::kUnknown, file + ": reading or writing failed (" + sqlite3_errstr(result) +
                                  "); is the disk full or failing?"};
    case SQLITE_CONSTRAINT:
      return AlreadyExists(file + ": " + (db == nullptr ? "conflict" : sqlite3_errmsg(db)));
    default:
      return Internal(file + ": " + (db == nullptr ? sqlite3_errstr(result) : sqlite3_errmsg(db)));
  }
}

namespace {

// More statements than the store has; listings with many filters are prepared each time.
constexpr size_t kMostKept = 128;

// A statement that a connection keeps.
struct KeptStatement {
  sqlite3_stmt* statement = nullptr;
  bool in_use = false;
};

class SqliteCursor final : public SqlCursor {
 public:
  // `kept`: to be given back; null: the statement is this cursor's own.
  SqliteCursor(sqlite3* db, sqlite3_stmt* statement, KeptStatement* kept)
      : db_(db), statement_(statement), kept_(kept) {}
  ~SqliteCursor() override {
    if (kept_ == nullptr) {
      sqlite3_finalize(statement_);
      return;
    }
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
    kept_->in_use = false;
  }

  void BindText(int at, std::string_view text) override {
    sqlite3_bind_text64(statement_, at, text.data() == nullptr ? "" : text.data(), text.size(),
                        SQLITE_STATIC, SQLITE_UTF8);
  }
  void BindInt(int at, int64_t value) override { sqlite3_bind_int64(statement_, at, value); }
  Result<bool> Step() override {
    const int result = sqlite3_step(statement_);
    if (result == SQLITE_ROW) return true;
    if (result == SQLITE_DONE) return false;
    return SqliteStatus(db_, result);
  }
  std::string Text(int column) const override {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    const int size = sqlite3_column_bytes(statement_, column);
    return text == nullptr ? "" : std::string(text, static_cast<size_t>(size));
  }
  int64_t Int(int column) const override { return sqlite3_column_int64(statement_, column); }

 private:
  sqlite3* const db_;
  sqlite3_stmt* const statement_;
  KeptStatement* const kept_;
};

}  // namespace

struct SqliteConnection::State {
  sqlite3* db = nullptr;
  std::unordered_map<std::string, KeptStatement> kept;
  ~State() {
    for (auto& [sql, one] : kept) sqlite3_finalize(one.statement);
    sqlite3_close(db);
  }
};

SqliteConnection::SqliteConnection(std::unique_ptr<State> state) : state_(std::move(state)) {}
SqliteConnection::SqliteConnection(SqliteConnection&&) noexcept = default;
SqliteConnection::~SqliteConnection() = default;

namespace {

// SQLite reports a read that failed with EIO as a damaged file (SQLITE_IOERR_CORRUPTFS, then
// SQLITE_CORRUPT), and a user would move an intact file away.
struct Methods : sqlite3_io_methods {
  const sqlite3_io_methods* plain = nullptr;
};

int Read(sqlite3_file* file, void* out, int size, sqlite3_int64 at) {
  const auto* const ours = static_cast<const Methods*>(file->pMethods);
  const int result = FaultPoint("store.read").ok() ? ours->plain->xRead(file, out, size, at)
                                                   : SQLITE_IOERR_CORRUPTFS;
  return result == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : result;
}

// Copies of SQLite's method tables with this Read; SQLite has one for databases and one for
// journals.
const sqlite3_io_methods* WithOurRead(const sqlite3_io_methods* plain) {
  static Mutex mu;
  static std::array<Methods, 4> made;
  const MutexLock lock(mu);
  for (Methods& one : made) {
    if (one.plain == plain) return &one;
    if (one.plain != nullptr) continue;
    static_cast<sqlite3_io_methods&>(one) = *plain;
    one.xRead = Read;
    one.plain = plain;
    return &one;
  }
  return plain;
}

// SQLite's VFS with two changes: the errors of reads, and the directory sync that SQLite makes with
// the first commit of each process in case it created the write-ahead log. A process that opens an
// existing log did not create it, and its creator synced the directory before it made the tables
// (MakeSchema), so each commit stays one sync.
const char* VfsName() {
  static const sqlite3_vfs* const plain = sqlite3_vfs_find("unix");
  static sqlite3_vfs ours;
  static const bool registered = [] {
    ours = *plain;
    ours.zName = "shoal-unix";
    ours.xOpen = [](sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out) {
      if ((flags & SQLITE_OPEN_WAL) != 0 && name != nullptr && access(name, F_OK) == 0)
        flags &= ~SQLITE_OPEN_CREATE;
      const int opened = plain->xOpen(vfs, name, file, flags, out);
      if (opened == SQLITE_OK) file->pMethods = WithOurRead(file->pMethods);
      return opened;
    };
    return sqlite3_vfs_register(&ours, 0) == SQLITE_OK;
  }();
  return registered ? ours.zName : nullptr;
}

}  // namespace

Result<SqliteConnection> SqliteConnection::Open(const std::filesystem::path& path,
                                                int busy_timeout_ms) {
  auto state = std::make_unique<State>();
  const int result =
      sqlite3_open_v2(path.c_str(), &state->db,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, VfsName());
  if (result != SQLITE_OK) return SqliteStatus(state->db, result);
  // After any error SQLite opens the file read-only and would then report missing permissions.
  if (sqlite3_db_readonly(state->db, "main") == 1 && access(path.c_str(), W_OK) == 0)
    return Status(Code::kUnknown, path.string() +
                                      ": could not be opened for writing (disk I/O "
                                      "error); try again");
  sqlite3_busy_timeout(state->db, busy_timeout_ms);
  // No checkpoint when the last connection closes: it would cost two syncs, and the next process
  // reads the log as well. A commit checkpoints every 1000 pages.
  sqlite3_db_config(state->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return SqliteConnection(std::move(state));
}

Status SqliteConnection::Execute(const char* sql) {
  return SqliteStatus(state_->db, sqlite3_exec(state_->db, sql, nullptr, nullptr, nullptr));
}

Result<Statement> SqliteConnection::Prepare(std::string_view sql) {
  KeptStatement* kept = nullptr;
  if (const auto found = state_->kept.find(std::string(sql)); found != state_->kept.end()) {
    if (!found->second.in_use) kept = &found->second;
  } else if (state_->kept.size() < kMostKept) {
    kept = &state_->kept[std::string(sql)];
  }
  sqlite3_stmt* statement = kept == nullptr ? nullptr : kept->statement;
  if (statement == nullptr) {
    const int result = sqlite3_prepare_v2(state_->db, sql.data(), static_cast<int>(sql.size()),
                                          &statement, nullptr);
    if (result != SQLITE_OK) return SqliteStatus(state_->db, result);
  }
  if (kept != nullptr) *kept = {statement, true};
  return Statement(std::make_unique<SqliteCursor>(state_->db, statement, kept));
}

bool SqliteConnection::InTransaction() const { return sqlite3_get_autocommit(state_->db) == 0; }

Status SqliteConnection::CopyTo(const std::filesystem::path& path) {
  sqlite3* to = nullptr;
  int result = sqlite3_open_v2(path.c_str(), &to, SQLITE_OPEN_READWRITE, nullptr);
  if (result == SQLITE_OK) {
    sqlite3_backup* const copy = sqlite3_backup_init(to, "main", state_->db, "main");
    if (copy != nullptr) {
      // All pages in one step: one read transaction, so writers cannot make it start again.
      while ((result = sqlite3_backup_step(copy, -1)) == SQLITE_BUSY || result == SQLITE_LOCKED)
        sqlite3_sleep(1);
    }
    result = copy == nullptr ? sqlite3_errcode(to) : sqlite3_backup_finish(copy);
  }
  const Status status = SqliteStatus(to, result);
  sqlite3_close(to);
  return status;
}

Result<Transaction> Transaction::Begin(SqliteConnection* db) {
  TRY(db->Execute("BEGIN IMMEDIATE"));
  return Transaction(db);
}

Transaction::~Transaction() {
  if (db_ != nullptr) (void)db_->Execute("ROLLBACK");
}

Status Transaction::Commit() {
  TRY(FaultPoint("store.commit"));
  TRY(db_->Execute("COMMIT"));
  db_ = nullptr;
  return FaultPoint("store.committed");  // as a sync that fails
}

}  // namespace shoal::controller
