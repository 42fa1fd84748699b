// The embedded store: one SQLite file shared by all `shoal` commands of a user.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "controller/store/store.h"

namespace shoal::controller {

struct SqliteOptions {
  int busy_timeout_ms = 10'000;   // how long to wait for another process's commit
  bool several_machines = false;  // share it; also if its file system is a network's
  Duration disk_patience = std::chrono::seconds(10);  // with a disk that fails, when it is opened
};

// Opens or makes the store (WAL; a synced commit is one fsync; where several machines share it a
// rollback journal, some more). One clear sentence where the disk
// is full, the file is damaged, locked for too long, not writable, or made by a newer version.
Result<std::unique_ptr<Store>> OpenSqliteStore(const std::filesystem::path& path,
                                               const SqliteOptions& options = {});

}  // namespace shoal::controller
