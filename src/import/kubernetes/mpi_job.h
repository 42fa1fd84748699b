// What is particular to MPIJob among Kubeflow's jobs (kubeflow.cc): its workers are hosts, and its
// launcher's command speaks of files that the operator wrote.
#pragma once

#include "import/conversion/importer.h"

namespace shoal::importer {

struct MpiJobOptions {
  int slots = 1;                // slotsPerWorker
  bool launcher_works = false;  // runLauncherAsWorker
};

// When all roles are read.
void ConvertMpiLauncher(const MpiJobOptions& ask, FieldReader* document, JobBuilder* builder);

}  // namespace shoal::importer
