// Pages of jobs and of all events. Used by sql_store.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/store/sql/sql_database.h"

namespace shoal::controller {

// InvalidArgument for a filter that is too large or not UTF-8.
Status CheckFilter(const JobFilter& filter);

// At most `limit` jobs with an order below `before`, newest first. O(limit) rows for filters by
// state, team, user or labels; other conditions are checked row by row.
Status ReadJobs(SqlConnection& db, const JobFilter& filter, int64_t before, int limit,
                std::vector<JobSummary>* jobs);

Status ReadStoredEvents(SqlConnection& db, const SqlDialect& dialect, int64_t after, int limit,
                        std::vector<StoredEvent>* events);

// Labels as they are stored.
std::string LabelText(const JobLabels& labels);
// What can be read of them.
JobLabels ParseLabels(const std::string& text);

}  // namespace shoal::controller
