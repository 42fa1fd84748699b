// Settings for Kubernetes pods that all roles of an imported job share. Used by JobBuilder.
#pragma once

#include "job/spec/job.h"

namespace shoal::importer {

// Moves settings that all roles share to the job, so that its coordinator has them too: scheduling,
// labels and annotations, but no service account, volumes or host network.
void HoistCommonSettings(job::Job* job);

}  // namespace shoal::importer
