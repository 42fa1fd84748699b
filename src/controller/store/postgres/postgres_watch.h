// Notifications of commits in PostgreSQL (LISTEN). Used by postgres_database.cc.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "controller/store/store.h"

namespace shoal::controller {

inline constexpr const char* kNotificationChannel = "shoal_changes";

// Calls `on_change` on a thread of its own after each commit. A lost connection is opened again,
// and `on_change` called, since commits may have been missed.
Result<std::unique_ptr<Store::Watcher>> WatchPostgres(const std::string& url,
                                                      std::function<void()> on_change);

}  // namespace shoal::controller
