#include "learn/sparse/softmax_learner.h"

#include <algorithm>
#include <cmath>

namespace shoal::learn::sparse {

Row ClassRow(const Row& row, uint32_t classes, uint32_t class_number, std::vector<uint32_t>* room) {
  if (room->size() < row.count) room->resize(row.count + row.count / 2);
  uint32_t* const to = room->data();
  for (uint32_t i = 0; i < row.count; ++i) to[i] = row.features[i] * classes + class_number;
  Row of_class = row;
  of_class.features = to;
  return of_class;
}

float LogSumExp(const float* values, size_t count) {
  const float most = *std::max_element(values, values + count);
  float sum = 0;
  for (size_t i = 0; i < count; ++i) sum += std::exp(values[i] - most);
  return most + std::log(sum);
}

float SoftmaxLearner::Step(float* state, float* bias, const Row& row, float label,
                           Scratch* scratch) const {
  if (scratch->parts.size() < classes_) scratch->parts.resize(classes_);
  if (scratch->weights.size() < classes_) scratch->weights.resize(classes_);
  float* const margins = scratch->weights.data();
  float* const biases =
      bias == nullptr ? nullptr : state + uint64_t{width()} * features_ * classes_;
  const auto bias_of = [&](uint32_t c) {
    return biases == nullptr ? nullptr : biases + size_t{width()} * c;
  };
  for (uint32_t c = 0; c < classes_; ++c) {
    const Row of_class = ClassRow(row, classes_, c, &scratch->places);
    margins[c] = one_.MarginOf(state, bias_of(c), of_class, &scratch->parts[c]);
  }
  const float all = LogSumExp(margins, classes_);
  const auto truth = static_cast<uint32_t>(label);
  float truth_probability = 0;
  for (uint32_t c = 0; c < classes_; ++c) {
    const float probability = std::exp(margins[c] - all);
    if (c == truth) truth_probability = probability;
    const float error = (probability - (c == truth ? 1.0f : 0.0f)) * row.weight;
    const Row of_class = ClassRow(row, classes_, c, &scratch->places);
    one_.StepBy(state, bias_of(c), of_class, error, &scratch->parts[c]);
  }
  // log p − log(1 − p), of which the log-loss is −log p.
  const float log_truth = margins[truth] - all;
  return log_truth - std::log(std::max(1 - truth_probability, 1e-30f));
}

model::FactorModel SoftmaxLearner::EmptyModel(uint64_t /*features*/) const {
  model::FactorModel model = one_.EmptyModel(features_ * classes_);
  model.linear.biases.resize(classes_);
  return model;
}

void SoftmaxLearner::FillModel(const float* state, uint64_t first, uint64_t count,
                               model::FactorModel* model) const {
  const uint64_t end = std::min(first + count, features_ * classes_);
  if (first < end) one_.FillModel(state, first, end - first, model);
  for (uint64_t i = std::max(first, features_ * classes_); i < first + count; ++i)
    model->linear.biases[i - features_ * classes_] = one_.BiasOf(state + uint64_t{width()} * i);
}

}  // namespace shoal::learn::sparse
