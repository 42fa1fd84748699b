// Converts PyTorch launchers such as torchrun in the commands of PyTorch jobs. Shoal replaces a
// launcher that is the first word of the command; any other gets its parameters by PyTorch's
// variables.
#pragma once

#include <map>
#include <string>

#include "import/conversion/job_builder.h"

namespace shoal::importer {

struct TorchLauncherOptions {
  std::string per_node;  // processes of a pod: a number, "auto", "gpu", or empty
  bool explains = true;  // report launchers that are kept
  std::map<std::string, FieldReader> templates;  // pod templates by role
};

// Converts the commands of all roles. Call when all roles have been read.
void ConvertTorchLaunchers(TorchLauncherOptions* ask, JobBuilder* builder);

}  // namespace shoal::importer
