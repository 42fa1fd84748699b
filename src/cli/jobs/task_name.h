// "worker-1" on a command line: which task is meant.
#pragma once

#include <string>

#include "base/status.h"

namespace shoal::cli {

struct NamedTask {
  std::string role;
  int index = 0;
};

// ROLE-INDEX, or ROLE for its task 0. InvalidArgument if it is neither.
Result<NamedTask> ParseTaskName(const std::string& text);

}  // namespace shoal::cli
