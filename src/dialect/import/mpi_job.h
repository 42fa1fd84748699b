// What is particular to MPIJob among Kubeflow's jobs (kubeflow.cc): its workers are hosts, and its
// launcher's command speaks of files that the operator wrote.
#pragma once

#include "dialect/import/importer.h"

namespace shoal::dialect {

struct MpiAsk {
  int slots = 1;                // slotsPerWorker
  bool launcher_works = false;  // runLauncherAsWorker
};

// When all roles are read.
void FinishMpiJob(const MpiAsk& ask, Section* document, JobBuilder* builder);

}  // namespace shoal::dialect
