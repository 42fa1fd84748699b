// Ended jobs whose engine could not remove all their resources: its daemon or cluster did not
// answer, or a container did not stop. They are recorded in files, and every command that opens the
// store tries again.
//
//     HOME/leftovers/<job id>    {"engine": …, "why": …, "tried": seconds since the epoch}
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/files/state_home.h"
#include "controller/recovery/reconcile.h"

namespace shoal::controller {

struct Leftover {
  std::string job;
  std::string engine;
  std::string why;  // the engine's error message
  WallTime tried;   // time of the last attempt
};

Status RecordLeftover(const StateHome& home, const Leftover& leftover);
// Ordered by job id; unreadable files are skipped.
std::vector<Leftover> ListLeftovers(const StateHome& home);

// Asks the engines to remove the recorded jobs' resources and deletes the records that succeed.
// Skips jobs that have not ended and those tried less than a minute ago. Interrupts an engine that
// does not answer within `patience`. Returns the removed ones. Costs one directory listing if
// nothing is recorded.
std::vector<Leftover> RemoveLeftovers(const ReconcileOptions& options,
                                      std::chrono::milliseconds patience);

}  // namespace shoal::controller
