#include "learn/fm/learner.h"

#include <algorithm>
#include <array>

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

std::vector<sparse::Slot> SlotsOf(const logistic::Rule& linear, const Rule& rule) {
  std::vector<sparse::Slot> slots = {{0, 1, {linear.alpha, linear.beta}, linear.l2, true}};
  for (uint32_t f = kLinearFloats; f < kLinearFloats + rule.factors; ++f)
    slots.push_back({f, f + rule.stored, {rule.alpha, rule.beta}, 0, false});
  return slots;
}

}  // namespace

FmLearner::FmLearner(const Params& params, uint32_t fields, const logistic::Kernels* linear,
                     const Kernels* kernels)
    : linear_rule_{static_cast<float>(params.alpha), static_cast<float>(params.beta),
                   static_cast<float>(params.l1), static_cast<float>(params.l2),
                   sparse::LossFor(params)},
      rule_(RuleOf(params, fields)),
      slots_(SlotsOf(linear_rule_, rule_)),
      linear_(linear),
      kernels_(kernels) {}

Result<FmLearner> FmLearner::Make(const Params& params) {
  TRY_ASSIGN(const Kernels* kernels, ChooseKernels(params.simd));
  TRY_ASSIGN(const logistic::Kernels* linear, logistic::ChooseKernels(params.simd));
  return FmLearner(params, 0, linear, kernels);
}

float FmLearner::Step(float* state, float* bias, const Row& row, float label,
                      Scratch* scratch) const {
  // The pairs come first: they prefetch the states.
  const float pairs = kernels_->pairs(rule_, state, row, scratch);
  const float bias_weight = bias == nullptr ? 0 : logistic::FtrlWeight(linear_rule_, bias);
  const float margin =
      pairs + bias_weight + linear_->ftrl_margin(linear_rule_, state, width(), row, scratch);
  const float error = sparse::ErrorOf(linear_rule_.loss, margin, label) * row.weight;
  linear_->ftrl_step(linear_rule_, state, width(), row, error, scratch);
  kernels_->step(rule_, state, row, error, scratch);
  if (bias != nullptr) logistic::FtrlStep(linear_rule_, bias, bias_weight, error);
  return margin;
}

float FmLearner::MarginOf(const float* state, const float* bias, const Row& row,
                          Scratch* scratch) const {
  const float pairs = kernels_->pairs(rule_, state, row, scratch);
  const float bias_weight = bias == nullptr ? 0 : logistic::FtrlWeight(linear_rule_, bias);
  return pairs + bias_weight + linear_->ftrl_margin(linear_rule_, state, width(), row, scratch);
}

void FmLearner::StepBy(float* state, float* bias, const Row& row, float error,
                       Scratch* scratch) const {
  linear_->ftrl_step(linear_rule_, state, width(), row, error, scratch);
  kernels_->step(rule_, state, row, error, scratch);
  if (bias == nullptr) return;
  logistic::FtrlStep(linear_rule_, bias, logistic::FtrlWeight(linear_rule_, bias), error);
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

float FmLearner::InitialWeight(uint32_t feature, size_t slot) const {
  return InitialFactor(rule_, feature, static_cast<uint32_t>(slot) - 1);
}

float FmLearner::FieldGradients(const float* weights, const float* shift, const Row& row,
                                float* gradients, float* shifted) const {
  const size_t slots = slots_.size();
  const uint32_t k = rule_.per_field();
  float sum = 0, without = 0;
  for (uint32_t i = 0; i < row.count; ++i) {
    std::fill_n(gradients + i * slots + 1, slots - 1, 0.0f);
    for (uint32_t j = 0; j < i; ++j) {
      const float x = sparse::ValueAt(row, i) * sparse::ValueAt(row, j);
      for (uint32_t d = 0; d < k; ++d) {
        const uint32_t of_i = row.fields[j] * k + d, of_j = row.fields[i] * k + d;
        const size_t at_i = i * slots + 1 + of_i, at_j = j * slots + 1 + of_j;
        const float a = weights[at_i] + InitialFactor(rule_, row.features[i], of_i);
        const float b = weights[at_j] + InitialFactor(rule_, row.features[j], of_j);
        gradients[at_i] += x * b;
        gradients[at_j] += x * a;
        sum += x * a * b;
        without += x * (a - shift[at_i]) * (b - shift[at_j]);
      }
    }
  }
  *shifted += sum - without;
  return sum;
}

float FmLearner::Gradients(const float* weights, const float* shift, const Row& row,
                           float* gradients, float* shifted) const {
  const size_t slots = slots_.size();
  float margin = 0, moved = 0;
  for (uint32_t i = 0; i < row.count; ++i) {
    const float x = sparse::ValueAt(row, i);
    gradients[i * slots] = x;
    margin += weights[i * slots] * x;
    moved += shift[i * slots] * x;
  }
  *shifted = moved;
  if (rule_.fields > 0) return margin + FieldGradients(weights, shift, row, gradients, shifted);
  return margin + kernels_->gradients(rule_, {weights, shift, slots}, row, gradients, shifted);
}

}  // namespace shoal::learn::fm
