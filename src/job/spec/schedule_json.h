// JSON of a job's schedule; called by json.cc.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "job/spec/schedule.h"

namespace shoal::job {

json::object EncodeSchedule(const Schedule& schedule);
// InvalidArgument names the field.
Status DecodeSchedule(const json::object& object, Schedule* schedule);

}  // namespace shoal::job
