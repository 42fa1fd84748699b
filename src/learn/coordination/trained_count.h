// Checks that a training has processed all data: the number of trained examples (or words) must be
// the number counted in one pass, times the epochs. Trainers check it at the end of an epoch and
// before they save; a difference fails the job.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace shoal::learn {

struct TrainedCount {
  uint64_t trained = 0;  // over all epochs and restarts; repetitions count again
  uint64_t counted = 0;  // in one pass over the data
  uint64_t epochs = 0;
  std::string_view unit = "examples";

  uint64_t expected() const { return counted * epochs; }
};

// FailedPrecondition unless trained == counted × epochs. `what` names the numbers' owner: "worker
// 3" or "the job".
Status CheckTrainedCount(const TrainedCount& numbers, std::string_view what);

// The numbers for a job's result, named by the unit: examples_trained, examples, epochs.
json::object TrainedCountMetadata(const TrainedCount& numbers);

}  // namespace shoal::learn
