// What `shoal schedule` and `shoal plan` say alike of scheduled jobs.
#pragma once

#include <string>

#include "base/status.h"
#include "controller/files/state_home.h"
#include "engine/schedules.h"
#include "job/spec/job.h"

namespace shoal::cli {

// Where the job's file is kept for its runs, and whence they are started: the folder of the file.
engine::ScheduledRun ScheduledRunOf(const job::Job& job, const controller::StateHome& home,
                                    const std::string& folder);

// For an engine without schedules: `why`, and the line of a crontab that does it.
Status NoSchedules(const std::string& engine, const std::string& file,
                   const job::Schedule& schedule, const Status& why);

}  // namespace shoal::cli
