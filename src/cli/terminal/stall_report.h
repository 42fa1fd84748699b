// What a job's tasks were doing when it was found to stand still, for `shoal show`.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/store/job_record.h"

namespace shoal::cli {

// Of the last stall among the job's events: when, and of each task its age, last line, processes
// with the places that their threads wait in, and connections. Empty if it never stalled. `from`:
// the job's submission. Safe for a terminal, whatever the launchers said.
std::string FormatStallReport(const std::vector<controller::Event>& events, WallTime from);

}  // namespace shoal::cli
