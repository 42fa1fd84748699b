// The reference page of the job file and its JSON Schema, generated from the field table
// (fields.h).
//
// They are stored in docs/job-file.md and docs/job.schema.json. A test fails if they differ;
// SHOAL_REGENERATE=1 job_test rewrites them.
#pragma once

#include <string>

#include "base/json.h"

namespace shoal::job {

// In Markdown.
std::string ReferencePage();
// In draft 2020-12, for editors. It covers types, ranges and names; only the parser checks
// references between roles.
json::object JobSchema();

}  // namespace shoal::job
