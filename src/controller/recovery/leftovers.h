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
// RemoveScratch of a job whose programs have ended; what cannot be removed is recorded.
void ClearScratch(const StateHome& home, const Leftover& job, JobState state);
void ForgetLeftover(const StateHome& home, const std::string& job);
// Ordered by job id; unreadable files are skipped.
std::vector<Leftover> ListLeftovers(const StateHome& home);

// Asks the engines to remove the recorded jobs' resources and deletes the records that succeed.
// Skips jobs that have not ended, suspended ones included, and those tried less than a minute ago,
// since another process may be at it. `alone`: no other process is, and nothing resumes a job
// meanwhile, so resources of suspended jobs are removed too. Interrupts an engine that does not
// answer within `patience`. Returns the removed ones. Costs one directory listing if nothing is
// recorded.
std::vector<Leftover> RemoveLeftovers(const ReconcileOptions& options,
                                      std::chrono::milliseconds patience, bool alone = false);

}  // namespace shoal::controller
