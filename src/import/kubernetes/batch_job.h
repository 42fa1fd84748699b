// The spec of a Job of Kubernetes, which JobSets have too.
#pragma once

#include <string>

#include "import/kubernetes/pod_template.h"

namespace shoal::importer {

// A JobSpec as a role of that name, with the job's limits, `on_exit` and success by it. False after
// an error.
bool ReadJobSpec(FieldReader* spec, const std::string& role, const PodOptions& options,
                 JobBuilder* builder);

}  // namespace shoal::importer
