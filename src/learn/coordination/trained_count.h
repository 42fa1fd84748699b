// The check that a training has seen its data as often as it should have: the number of examples
// (or words) that were trained is the number that was counted, once for each epoch. Trainers call
// it at an epoch's end and before they save: what does not add up fails the job.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace shoal::learn {

struct TrainedCount {
  uint64_t trained = 0;  // over all epochs and all restarts; what was trained twice counts twice
  uint64_t counted = 0;  // in one pass over the data
  uint64_t epochs = 0;
  std::string_view unit = "examples";

  uint64_t expected() const { return counted * epochs; }
};

// FailedPrecondition if trained is not counted × epochs; `what`: whose numbers they are, such as
// "worker 3" or "the job".
Status CheckTrainedCount(const TrainedCount& numbers, std::string_view what);

// The numbers as they stand in a job's result, named after the unit: examples_trained, examples,
// epochs.
json::object TrainedCountMetadata(const TrainedCount& numbers);

}  // namespace shoal::learn
