// Records of ended jobs that are not to be kept any longer: out of the store, with their
// directories. Every command that opens the store calls it for those whose job files say how long;
// `shoal jobs --prune` for all that are old.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "controller/files/state_home.h"
#include "controller/store/store.h"

namespace shoal::controller {

// Removes every ended job whose limits.keep_records has passed at `now`; with `age` instead every
// job that ended longer ago. Gives the ids of those that are gone, oldest first. One that cannot be
// removed stays for the next time; the first such error is given if nothing could be removed. The
// directory goes first: who dies in between leaves a record that is pruned again. Costs one query
// on an index if there is nothing to do.
Result<std::vector<std::string>> Prune(Store* store, const StateHome& home, WallTime now,
                                       std::optional<Duration> age = std::nullopt);

// Removes every ended job whose record cannot be read whole (JobRecord::damage); otherwise the
// same.
Result<std::vector<std::string>> PruneUnreadable(Store* store, const StateHome& home);

}  // namespace shoal::controller
