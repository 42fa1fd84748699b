// Jobs that have ended while their engine could not remove all that it had made: its daemon or
// cluster did not answer, or a container did not go. They are recorded, and each command that opens
// the store tries again.
//
//   HOME/leftovers/<job id>    {"engine": …, "why": …, "tried": seconds since the epoch}
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
  std::string why;  // the engine's own sentence
  WallTime tried;   // last
};

Status RecordLeftover(const StateHome& home, const Leftover& leftover);
// By job id; files that cannot be read are passed over.
std::vector<Leftover> ListLeftovers(const StateHome& home);

// Has the engines remove what is recorded, unless that was tried less than a minute ago, and
// forgets what is gone. Never of a job that has not ended. An engine that does not answer is
// interrupted after `patience`. Gives what was removed. Costs one look into a directory if nothing
// is recorded.
std::vector<Leftover> RemoveLeftovers(const ReconcileOptions& options,
                                      std::chrono::milliseconds patience);

}  // namespace shoal::controller
