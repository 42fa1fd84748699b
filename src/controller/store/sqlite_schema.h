// The tables of the embedded store and their versions. Used by sqlite_store.cc.
//
// PRAGMA user_version is 1 for a store that earlier releases can read and write too, and 2 once a
// lease was taken (sql_store.cc): they know no leases and would write past the leader, and they
// refuse such a file. What was added to version 1 (columns with defaults, tables, triggers) does
// not disturb them; triggers maintain it when they write.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"
#include "controller/store/sqlite_connection.h"

namespace shoal::controller {

// Creates the tables or adds what an earlier release's lack, and returns the store's id. `bell`:
// the open notification file, whose lock serializes the processes that do this. FailedPrecondition
// if the file has a version that is unknown here.
Result<std::string> EnsureSchema(SqliteConnection* db, int bell, const std::filesystem::path& path,
                                 int timeout_ms, bool several_machines);

// Sets the journal mode: a write-ahead log, or a rollback journal where machines share the file.
Status SetJournal(SqliteConnection* db, bool several_machines);

}  // namespace shoal::controller
