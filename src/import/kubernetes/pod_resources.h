// Resources of Kubernetes containers: requests and limits of processors, memory, GPUs, and extended
// resources.
#pragma once

#include "import/conversion/job_builder.h"

namespace shoal::importer {

// Reads a container's `resources` into the role. Resources without a field in the job file are
// passed to the pods by kubernetes.resources.
void ReadPodResources(FieldReader* container, job::Role* role, JobBuilder* builder);

}  // namespace shoal::importer
