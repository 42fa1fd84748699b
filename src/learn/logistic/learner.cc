#include "learn/logistic/learner.h"

#include "learn/logistic/kernels_scalar.h"

namespace shoal::learn::logistic {

Rule RuleOf(const Params& params) {
  return {static_cast<float>(params.alpha), static_cast<float>(params.beta),
          static_cast<float>(params.l1), static_cast<float>(params.l2), sparse::LossFor(params)};
}

Result<LogisticLearner> LogisticLearner::Make(const Params& params) {
  TRY_ASSIGN(const Kernels* kernels, ChooseKernels(params.simd));
  return LogisticLearner(RuleOf(params), params.ftrl(), kernels);
}

float LogisticLearner::MarginOf(const float* state, const float* bias, const Row& row,
                                Scratch* scratch) const {
  const float bias_weight = bias == nullptr ? 0 : BiasOf(bias);
  if (ftrl_) return bias_weight + kernels_->ftrl_margin(rule_, state, 2, row, scratch);
  float margin = bias_weight;
  for (uint32_t i = 0; i < row.count; ++i)
    margin += state[2 * size_t{row.features[i]}] * sparse::ValueAt(row, i);
  return margin;
}

void LogisticLearner::StepBy(float* state, float* bias, const Row& row, float error,
                             Scratch* scratch) const {
  if (ftrl_) {
    kernels_->ftrl_step(rule_, state, 2, row, error, scratch);
    if (bias != nullptr) FtrlStep(rule_, bias, FtrlWeight(rule_, bias), error);
    return;
  }
  for (uint32_t i = 0; i < row.count; ++i)
    AdagradStep(rule_, state + 2 * size_t{row.features[i]}, error * sparse::ValueAt(row, i));
  if (bias != nullptr) AdagradStep(rule_, bias, error);
}

model::FactorModel LogisticLearner::EmptyModel(uint64_t features) const {
  model::FactorModel model;
  model.linear.weights.resize(features);
  return model;
}

void LogisticLearner::FillModel(const float* state, uint64_t first, uint64_t count,
                                model::FactorModel* model) const {
  float* const weights = model->linear.weights.data();
  if (ftrl_) {
    kernels_->ftrl_weights(rule_, state + 2 * first, count, weights + first);
    return;
  }
  for (uint64_t i = first; i < first + count; ++i) weights[i] = state[2 * i];
}

float LogisticLearner::BiasOf(const float* bias) const {
  return ftrl_ ? FtrlWeight(rule_, bias) : bias[0];
}

float LogisticLearner::Gradients(const float* weights, const float* shift, const Row& row,
                                 float* gradients, float* shifted) const {
  float margin = 0, moved = 0;
  for (uint32_t i = 0; i < row.count; ++i) {
    const float x = sparse::ValueAt(row, i);
    gradients[i] = x;
    margin += weights[i] * x;
    moved += shift[i] * x;
  }
  *shifted = moved;
  return margin;
}

}  // namespace shoal::learn::logistic
