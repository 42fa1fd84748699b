// Jobs as tables and JSON, for `shoal jobs` and `shoal show`.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "cli/jobs/session.h"
#include "controller/store/job_record.h"

namespace shoal::cli {

json::object JobToJson(const controller::JobRecord& job, bool unattended);
json::object TaskToJson(const controller::TaskRecord& task);
json::object EventToJson(const controller::Event& event);

// "running (unattended)", "failed"
std::string StateText(const controller::JobRecord& job, bool unattended);
// Time the job spent suspended or waiting to be restarted: from each suspension to the next start
// of its programs, or to its end. `events`: all of its events.
Duration TimeSuspended(const std::vector<controller::Event>& events);
// The same, read from the store if the job was ever suspended; 0 if it cannot be read.
Duration TimeSuspended(Session& session, const std::string& id);
// Run time so far, without `suspended`; empty if the job never ran.
std::string RunTime(const controller::JobRecord& job, WallTime now, Duration suspended);
// "2 min ago"
std::string Ago(WallTime then, WallTime now);

// Formats columns of equal width, separated by two spaces, with the first row as heading and
// without trailing spaces.
std::string Table(const std::vector<std::vector<std::string>>& rows);

}  // namespace shoal::cli
