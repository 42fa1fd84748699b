// What becomes of torchrun and its like in the commands of PyTorch's jobs (kubeflow.cc,
// train_job.cc): Shoal takes the place of one that is a command's first word, and tells those
// elsewhere in it where the others are, by PyTorch's variables.
#pragma once

#include <map>
#include <string>

#include "import/conversion/importer.h"

namespace shoal::importer {

struct TorchLauncherOptions {
  std::string per_node;  // processes of a pod: a number, "auto", "gpu", or nothing
  bool explains = true;  // tells of launchers that are kept
  std::map<std::string, FieldReader> templates;  // of the pods, by the role that they are
};

// When all roles are read.
void ConvertTorchLaunchers(TorchLauncherOptions* ask, JobBuilder* builder);

}  // namespace shoal::importer
