// Imports a Kubernetes batch/v1 JobSpec, which JobSets contain too.
#pragma once

#include <string>

#include "import/kubernetes/pod_template.h"

namespace shoal::importer {

// Adds a role with that name from a JobSpec and sets the job's limits, exit-code rules and success
// rule. False after an error.
bool ReadJobSpec(FieldReader* spec, const std::string& role, const PodOptions& options,
                 JobBuilder* builder);

}  // namespace shoal::importer
