// Why a job waits for its admission, as commands show it.
#pragma once

#include <string>
#include <vector>

namespace shoal::controller {

// Why a job waits for its admission. Plain value.
struct WhyWaits {
  bool waits = false;
  std::string reason;
  // Each alone would start the job now, as a trial showed: "in queue b", "with 3 tasks instead of
  // 4". Empty if no change of the job's file does.
  std::vector<std::string> changes;
  // "expected to start in about 12 min (80 % sure)"; empty if nothing is known.
  std::string forecast = {};
};

}  // namespace shoal::controller
