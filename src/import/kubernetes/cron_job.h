// What the CronJob of Kubernetes and that of Volcano have in common: when a job is run, and its
// template.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "import/conversion/importer.h"

namespace shoal::importer {

// Reads the document's spec into the job's schedule and gives the spec of its jobTemplate; nothing
// after an error. `definition`, `job_template`: of the table of fields.
std::optional<FieldReader> ReadCronJob(FieldReader* document, std::string_view definition,
                                       std::string_view job_template, JobBuilder* builder);

}  // namespace shoal::importer
