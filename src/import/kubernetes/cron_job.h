// The common part of Kubernetes' and Volcano's CronJob: the schedule and the job template.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "import/conversion/job_builder.h"

namespace shoal::importer {

// Reads the schedule into the job and returns the spec of the job template; nullopt after an error.
// `definition` and `job_template` name the definitions in the table of fields.
std::optional<FieldReader> ReadCronJob(FieldReader* document, std::string_view definition,
                                       std::string_view job_template, JobBuilder* builder);

}  // namespace shoal::importer
