// Activity of a job's tasks at the time of a stall, for `shoal show`.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/store/job_record.h"

namespace shoal::cli {

// Formats the last stall in `events`: its time, and for each task the time since its last activity,
// its last line, processes with the functions their threads wait in, and connections. Empty if the
// job never stalled. `from`: the job's submission. Safe for a terminal with any launcher input.
std::string FormatStallReport(const std::vector<controller::Event>& events, WallTime from);

}  // namespace shoal::cli
