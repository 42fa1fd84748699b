// Whether a job of an earlier supervisor can be managed here, and its locks. Used by supervisor.cc.
#pragma once

#include "base/status.h"
#include "controller/files/state_home.h"
#include "controller/store/job_record.h"
#include "engine/engine.h"

namespace shoal::controller {

// An engine that knows its tasks by process ids can manage those of this machine only:
// FailedPrecondition for a job whose processes run elsewhere.
Status CheckPlace(const StateHome& home, const JobRecord& job, engine::Engine* engine);

// An earlier leader that is frozen holds the engine's lock of the job for as long as it lives.
// `self`: the supervisor, which takes the job over.
Status BreakLocks(const StateHome& home, const JobRecord& job, const ProcessIdentity& self);

}  // namespace shoal::controller
