#include "learn/fm/learner.h"

#include <algorithm>

#include "learn/logistic/kernels_scalar.h"

namespace shoal::learn::fm {

namespace {

Rule RuleOf(const Params& params, uint32_t fields) {
  RuleOptions options;
  options.alpha = static_cast<float>(params.factor_alpha);
  options.beta = static_cast<float>(params.factor_beta);
  options.l2 = static_cast<float>(params.factor_l2);
  options.factors = static_cast<uint32_t>(params.factors) * std::max(fields, 1u);
  options.fields = fields;
  options.init = static_cast<float>(params.factor_init);
  options.seed = static_cast<uint64_t>(params.seed);
  return MakeRule(options);
}

}  // namespace

FmLearner::FmLearner(const Params& params, uint32_t fields, const logistic::Kernels* linear,
                     const Kernels* kernels)
    : linear_rule_{static_cast<float>(params.alpha), static_cast<float>(params.beta),
                   static_cast<float>(params.l1), static_cast<float>(params.l2)},
      rule_(RuleOf(params, fields)),
      linear_(linear),
      kernels_(kernels) {}

double FactorAlpha(const Params& params, int workers) {
  constexpr double kWholeRate = 4;  // workers
  return params.factor_alpha * std::min(1.0, kWholeRate / std::max(workers, 1));
}

Result<FmLearner> FmLearner::Make(const Params& params, int workers) {
  TRY_ASSIGN(const Kernels* kernels, ChooseKernels(params.simd));
  TRY_ASSIGN(const logistic::Kernels* linear, logistic::ChooseKernels(params.simd));
  Params own = params;
  own.factor_alpha = FactorAlpha(params, workers);
  return FmLearner(own, 0, linear, kernels);
}

float FmLearner::Step(float* state, float* bias, const Row& row, float label,
                      Scratch* scratch) const {
  // The pairs first: they ask for the states ahead of their use.
  const float pairs = kernels_->pairs(rule_, state, row, scratch);
  const float bias_weight = bias == nullptr ? 0 : logistic::FtrlWeight(linear_rule_, bias);
  const float margin =
      pairs + bias_weight + linear_->ftrl_margin(linear_rule_, state, width(), row, scratch);
  const float error = sparse::Probability(margin) - label;
  linear_->ftrl_step(linear_rule_, state, width(), row, error, scratch);
  kernels_->step(rule_, state, row, error, scratch);
  if (bias != nullptr) logistic::FtrlStep(linear_rule_, bias, bias_weight, error);
  return margin;
}

model::FactorModel FmLearner::EmptyModel(uint64_t features) const {
  model::FactorModel model;
  model.linear.weights.resize(features);
  model.factors = rule_.factors / std::max(rule_.fields, 1u);
  model.fields = rule_.fields;
  model.v.resize(features * rule_.factors);
  return model;
}

void FmLearner::FillModel(const float* state, uint64_t first, uint64_t count,
                          model::FactorModel* model) const {
  for (uint64_t i = first; i < first + count; ++i) {
    const float* const own = state + i * width();
    if (own[1] == 0) continue;  // never seen
    model->linear.weights[i] = logistic::FtrlWeight(linear_rule_, own);
    float* const v = model->v.data() + i * rule_.factors;
    for (uint32_t f = 0; f < rule_.factors; ++f)
      v[f] = own[kLinearFloats + f] + InitialFactor(rule_, static_cast<uint32_t>(i), f);
  }
}

float FmLearner::BiasOf(const float* bias) const {
  return logistic::FtrlWeight(linear_rule_, bias);
}

void FmLearner::Damp(float* delta, const float* state, float others) const {
  sparse::DampPair({linear_rule_.alpha, linear_rule_.beta}, state[1], others, delta, delta + 1);
  for (uint32_t f = kLinearFloats; f < kLinearFloats + rule_.stored; ++f) {
    const uint32_t n = f + rule_.stored;
    sparse::DampPair({rule_.alpha, rule_.beta}, state[n], others, delta + f, delta + n);
  }
}

}  // namespace shoal::learn::fm
