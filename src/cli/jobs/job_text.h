// Jobs as text, for `shoal jobs`, `shoal show` and other tables.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/store/job_record.h"

namespace shoal::cli {

// "running (unattended)", "failed"
std::string StateText(const controller::JobRecord& job, bool unattended);
// Run time so far, without `suspended`; empty if the job never ran.
std::string RunTime(const controller::JobRecord& job, WallTime now, Duration suspended);
// "2 min ago"
std::string Ago(WallTime then, WallTime now);

// Formats columns of equal width, separated by two spaces, with the first row as heading and
// without trailing spaces. Line breaks in cells become \xNN.
std::string Table(const std::vector<std::vector<std::string>>& given);

}  // namespace shoal::cli
