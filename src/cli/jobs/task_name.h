// Parses task names such as "worker-1" on the command line.
#pragma once

#include <string>

#include "base/status.h"

namespace shoal::cli {

struct NamedTask {
  std::string role;
  int index = 0;
};

// Accepts ROLE-INDEX, or ROLE for its task 0. InvalidArgument otherwise.
Result<NamedTask> ParseTaskName(const std::string& text);

}  // namespace shoal::cli
