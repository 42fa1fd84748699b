#include "sql/training/predicted_values.h"

#include <algorithm>

namespace shoal::sql {

using learn::sparse::LossKind;

json::value PredictedValues::PredictionOf(uint64_t row) const {
  if (numbers()) return all_.values[row];
  return json::string(all_.ClassOf(row));
}

double PredictedValues::ProbabilityOf(uint64_t row) const {
  const LossKind loss = all_.target.loss.kind;
  if (loss == LossKind::kLogistic) return static_cast<double>(all_.probabilities[row]);
  if (loss != LossKind::kSoftmax) return all_.values[row];
  const size_t classes = all_.classes.size();
  const float* const begin = &all_.probabilities[row * classes];
  return static_cast<double>(*std::max_element(begin, begin + classes));
}

Status CheckTrainer(const json::object& metadata, const std::filesystem::path& model,
                    const std::string& trainer) {
  const std::string by = GetStringOr(metadata, "algorithm", "");
  if (by.empty() || trainer.empty() || by == trainer) return Status::Ok();
  return InvalidArgument("the model in " + model.string() + " was trained by " + by + ", not by " +
                         trainer);
}

}  // namespace shoal::sql
