// Opens the embedded store: its files, its tables and its connection.

#include "controller/store/sqlite_store.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/private_files.h"
#include "controller/store/sql/sql_store.h"
#include "controller/store/sqlite_connection.h"
#include "controller/store/sqlite_database.h"
#include "controller/store/sqlite_schema.h"
#include "host/files/disk_retry.h"
#include "host/files/network_fs.h"

namespace shoal::controller {
namespace {

// A one-byte file beside the database; writing it notifies the other processes of a commit.
std::string BellName(const std::filesystem::path& path) {
  return path.filename().string() + "-bell";
}

// Job records hold secrets (`env`), so the files are private to the user in every directory and
// under every umask. SQLite gives later files the database's mode. Returns the notification file.
Result<UniqueFd> MakePrivate(const std::filesystem::path& path) {
  const std::string advice = "set SHOAL_HOME to a writable directory";
  if (const Status own = CheckOwnDirectory(path.parent_path()); !own.ok())
    return Status(own.code(), own.message() + "; or " + advice);
  TRY(OpenPrivateFile(path, O_RDWR).status());
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    const std::filesystem::path beside = path.string() + suffix;
    std::error_code ignored;  // it may be removed meanwhile, and SQLite's own are made like path
    std::filesystem::permissions(beside, std::filesystem::perms(0600), ignored);
  }
  return OpenPrivateFile(path.parent_path() / BellName(path), O_WRONLY);
}

// One attempt to open the store; a disk error may be temporary and is retried by the caller.
Result<std::unique_ptr<Store>> OpenOnce(const std::filesystem::path& path,
                                        const SqliteOptions& options) {
  if (const Status made = MakeDirectories(path.parent_path(), 0700); !made.ok()) {
    const bool denied = made.code() == Code::kPermissionDenied;
    return Status(denied ? Code::kPermissionDenied : Code::kFailedPrecondition,
                  made.message() + "; set SHOAL_HOME to a writable directory");
  }
  TRY_ASSIGN(UniqueFd bell, MakePrivate(path));
  TRY_ASSIGN(SqliteConnection db, SqliteConnection::Open(path, options.busy_timeout_ms));
  const bool several = options.several_machines || host::IsOnNetwork(path.parent_path());
  TRY_ASSIGN(const std::string store_id,
             EnsureSchema(&db, bell.get(), path, options.busy_timeout_ms, several));
  // A file that an earlier version created with a WAL is converted when no other process has it
  // open.
  if (several && !SetJournal(&db, true).ok())
    shoal::LogInfo(
        "{}: still uses a write-ahead log, which machines cannot share: other processes have it "
        "open",
        path.string());
  TRY(db.Execute("PRAGMA synchronous = FULL"));
  ::flock(bell.get(), LOCK_UN);
  SqliteDatabaseOptions database{path, path.parent_path() / BellName(path), options.busy_timeout_ms,
                                 !several};
  return MakeSqlStore(
      std::make_unique<SqliteDatabase>(std::move(db), std::move(bell), std::move(database)),
      store_id, options.clock);
}

}  // namespace

Result<std::unique_ptr<Store>> OpenSqliteStore(const std::filesystem::path& path,
                                               const SqliteOptions& options) {
  const auto patience = [&](const Status& error) {
    return std::min(host::DeviceErrorTimeout(error), options.disk_patience);
  };
  return host::RetryOnDiskError([&] { return OpenOnce(path, options); }, patience);
}

}  // namespace shoal::controller
