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
  int busy_timeout_ms = 10'000;   // wait for locks of other processes
  bool several_machines = false;  // shared by several machines; implied by a network file system
  Duration disk_patience = std::chrono::seconds(10);  // retries of disk errors while opening
  const Clock* clock = RealClock::Get();              // of leases; outlives the store
};

// Opens or creates the store. Uses a WAL, in which a synced commit is one fsync; with several
// machines a rollback journal, which costs more. Errors say whether the disk is full or the file
// damaged, locked for too long, not writable, or made by a newer version.
Result<std::unique_ptr<Store>> OpenSqliteStore(const std::filesystem::path& path,
                                               const SqliteOptions& options = {});

}  // namespace shoal::controller
