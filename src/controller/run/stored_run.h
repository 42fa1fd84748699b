// A job as the store has it, and what a controller needs from its events to continue it: how far
// the coordinator's events are stored, and which launchers should exist. Used by controller.cc and
// the supervisor.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/membership/desired_membership.h"
#include "controller/store/job_record.h"
#include "controller/store/store.h"
#include "job/spec/job.h"

namespace shoal::controller {

struct StoredRun {
  JobRecord record;
  job::Job job;
  std::vector<Event> events = {};  // empty for a job that has not been admitted
  std::vector<Event> log = {};     // all events of a job with elastic roles that waits
};

// Blocks on the store. NotFound; InvalidArgument for a record that cannot be read.
Result<StoredRun> LoadRun(Store* store, const std::string& id);

// The launchers that should exist after the events. `job` must outlive the result.
DesiredMembership MembershipAfter(const job::Job* job, std::span<const Event> events);

}  // namespace shoal::controller
