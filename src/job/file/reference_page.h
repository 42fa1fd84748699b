// The job file's reference page and JSON Schema, made from the table of fields (fields.h).
//
// docs/job-file.md and docs/job.schema.json hold them; a test fails when they differ, and
// SHOAL_REGENERATE=1 job_test writes them anew.
#pragma once

#include <string>

#include "base/json.h"

namespace shoal::job {

// Markdown.
std::string ReferencePage();
// Draft 2020-12, for editors. It knows types, ranges and names; references between roles only the
// parser checks.
json::object JobSchema();

}  // namespace shoal::job
