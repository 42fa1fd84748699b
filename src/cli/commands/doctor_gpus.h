// GPU checks of `shoal doctor`.
#pragma once

#include <string>

#include "base/json.h"

namespace shoal::cli {

struct GpuFinding {
  bool usable = true;  // false: a device is quarantined, or the driver does not answer
  std::string meaning;
  std::string remedy;
  json::object data;
};

// Read-only. Takes about 20 ms with a driver.
GpuFinding FindGpus();

}  // namespace shoal::cli
