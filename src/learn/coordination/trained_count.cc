#include "learn/coordination/trained_count.h"

#include <fmt/format.h>

#include <string>

namespace shoal::learn {

Status CheckTrainedCount(const TrainedCount& numbers, std::string_view what) {
  if (numbers.trained == numbers.expected()) return Status::Ok();
  return FailedPrecondition(fmt::format(
      "{} has trained {} {}, expected {}: {} in the data, {} epochs; nothing is saved. Run the job "
      "again, and leave its data files unchanged while it runs",
      what, numbers.trained, numbers.unit, numbers.expected(), numbers.counted, numbers.epochs));
}

json::object TrainedCountMetadata(const TrainedCount& numbers) {
  const std::string unit(numbers.unit);
  return {
      {unit + "_trained", numbers.trained}, {unit, numbers.counted}, {"epochs", numbers.epochs}};
}

}  // namespace shoal::learn
