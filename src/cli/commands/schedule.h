// Functions common to `shoal schedule` and `shoal plan`.
#pragma once

#include <string>

#include "base/status.h"
#include "controller/files/state_home.h"
#include "engine/schedules.h"
#include "job/spec/job.h"

namespace shoal::cli {

// Path of the stored job file and the directory in which its runs start: `folder`, that of the
// original file.
engine::ScheduledRun ScheduledRunOf(const job::Job& job, const controller::StateHome& home,
                                    const std::string& folder);

// The error for an engine without schedules: `why`, and an equivalent crontab line.
Status NoSchedules(const std::string& engine, const std::string& file,
                   const job::Schedule& schedule, const Status& why);

}  // namespace shoal::cli
