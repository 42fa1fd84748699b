// The spec of a Job of Kubernetes, which JobSets have too.
#pragma once

#include <string>

#include "dialect/import/kubernetes.h"

namespace shoal::dialect {

// A JobSpec as a role of that name, with the job's limits, `on_exit` and success by it. False after
// an error.
bool ReadJobSpec(Section* spec, const std::string& role, const PodOptions& options,
                 JobBuilder* builder);

}  // namespace shoal::dialect
