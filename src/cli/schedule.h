// What `shoal schedule` and `shoal plan` say alike of scheduled jobs.
#pragma once

#include <string>

#include "base/status.h"
#include "controller/state_home.h"
#include "engine/schedules.h"
#include "job/job.h"

namespace shoal::cli {

// Its algorithm and parameters (plan.cc). Unlike a run, this does not ask for the data to be here.
Status CheckLearn(const job::Job& job);

// Where the job's file is kept for its runs, and whence they are started: this directory.
engine::ScheduledRun ScheduledRunOf(const job::Job& job, const controller::StateHome& home);

// For an engine without schedules: `why`, and the line of a crontab that does it.
Status NoSchedules(const std::string& engine, const std::string& file,
                   const job::Schedule& schedule, const Status& why);

}  // namespace shoal::cli
