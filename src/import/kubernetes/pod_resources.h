// Resources of Kubernetes' containers: requests and limits, GPUs, and whatever else a cluster
// counts.
#pragma once

#include "import/conversion/importer.h"

namespace shoal::importer {

// Reads `resources` of a container into the role. Resources that a job file has no field for go to
// the pods by kubernetes.resources.
void ReadPodResources(FieldReader* container, job::Role* role, JobBuilder* builder);

}  // namespace shoal::importer
