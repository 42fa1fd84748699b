// The MPI part of importing an MPIJob (kubeflow.cc): workers are hosts, and the launcher's command
// refers to files that the operator writes.
#pragma once

#include "import/conversion/job_builder.h"

namespace shoal::importer {

struct MpiJobOptions {
  int slots = 1;                // slotsPerWorker
  bool launcher_works = false;  // runLauncherAsWorker
  bool hydra = false;           // mpiImplementation Intel or MPICH: the host file has HOST:SLOTS
};

// Adapts the launcher's command and the job's framework. Call when all roles have been read.
void ConvertMpiLauncher(const MpiJobOptions& ask, FieldReader* document, JobBuilder* builder);

}  // namespace shoal::importer
