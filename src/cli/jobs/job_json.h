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
// How much of its time the job was suspended for, or waited to be started again: from each
// suspension to its programs' next start, or to its end. Of all its events.
Duration TimeSuspended(const std::vector<controller::Event>& events);
// The same, read from the store where the job has been suspended at all; 0 if it cannot be read.
Duration TimeSuspended(Session& session, const std::string& id);
// How long it ran, or has run, without what it was suspended for; empty if it never did.
std::string RunTime(const controller::JobRecord& job, WallTime now, Duration suspended);
// "2 min ago"
std::string Ago(WallTime then, WallTime now);

// Columns of equal width, two blanks apart, the first row as heading; no trailing blanks.
std::string Table(const std::vector<std::vector<std::string>>& rows);

}  // namespace shoal::cli
