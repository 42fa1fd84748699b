// Jobs, tasks and events as JSON, for `--json` of the commands and for servers.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "controller/store/job_record.h"

namespace shoal::controller {

json::object JobToJson(const JobRecord& job, bool unattended);
json::object TaskToJson(const TaskRecord& task);
json::object EventToJson(const Event& event);

// Time the job spent suspended or waiting to be restarted: from each suspension to the next start
// of its programs, or to its end. `events`: all of its events.
Duration TimeSuspended(const std::vector<Event>& events);

}  // namespace shoal::controller
