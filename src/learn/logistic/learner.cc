#include "learn/logistic/learner.h"

#include "learn/logistic/kernels_scalar.h"

namespace shoal::learn::logistic {

Rule RuleOf(const Params& params) {
  return {static_cast<float>(params.alpha), static_cast<float>(params.beta),
          static_cast<float>(params.l1), static_cast<float>(params.l2)};
}

Result<LogisticLearner> LogisticLearner::Make(const Params& params) {
  TRY_ASSIGN(const Kernels* kernels, ChooseKernels(params.simd));
  return LogisticLearner(RuleOf(params), params.ftrl(), kernels);
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
