// Removal of expired records of ended jobs with their directories. Every command that opens the
// store prunes jobs whose job file sets `keep_records`; `shoal jobs --prune` prunes all old ones.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "controller/files/state_home.h"
#include "controller/store/store.h"

namespace shoal::controller {

// Removes ended jobs whose limits.keep_records has passed at `now`, or with `age` all that ended
// longer ago. Returns the ids of the removed jobs, oldest first. A job that cannot be removed stays
// for the next call; the first such error is returned if nothing could be removed. Deletes the
// directory before the record, so an interrupted removal is repeated. Costs one indexed query if
// there is nothing to do. What the jobs have used stays in the accounts (usage.h).
Result<std::vector<std::string>> Prune(Store* store, const StateHome& home, WallTime now,
                                       std::optional<Duration> age = std::nullopt);

// Likewise for ended jobs whose records cannot be read completely (JobRecord::damage).
Result<std::vector<std::string>> PruneUnreadable(Store* store, const StateHome& home, WallTime now);

}  // namespace shoal::controller
