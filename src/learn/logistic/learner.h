// Logistic regression for training on sparse examples: the state of a feature is [z, n] or [w, n]
// (kernels.h).
#pragma once

#include <vector>

#include "base/status.h"
#include "learn/logistic/kernels.h"
#include "learn/logistic/params.h"
#include "learn/sparse/learner.h"

namespace shoal::learn::logistic {

Rule RuleOf(const Params& params);

class LogisticLearner final : public sparse::Learner {
 public:
  // InvalidArgument for instructions that this machine lacks.
  static Result<LogisticLearner> Make(const Params& params);

  uint32_t width() const override { return 2; }
  float Step(float* state, float* bias, const Row& row, float label,
             Scratch* scratch) const override {
    return step_(rule_, state, bias, row, label, scratch);
  }
  const sparse::Loss& loss() const override { return rule_.loss; }
  float MarginOf(const float* state, const float* bias, const Row& row,
                 Scratch* scratch) const override;
  void StepBy(float* state, float* bias, const Row& row, float error,
              Scratch* scratch) const override;
  model::FactorModel EmptyModel(uint64_t features) const override;
  void FillModel(const float* state, uint64_t first, uint64_t count,
                 model::FactorModel* model) const override;
  float BiasOf(const float* bias) const override;
  const std::vector<sparse::Slot>& slots() const override { return slots_; }
  float Gradients(const float* weights, const float* shift, const Row& row, float* gradients,
                  float* shifted) const override;

 private:
  LogisticLearner(const Rule& rule, bool ftrl, const Kernels* kernels)
      : rule_(rule),
        slots_{{0, 1, {rule.alpha, rule.beta}, rule.l2, ftrl}},
        ftrl_(ftrl),
        kernels_(kernels),
        step_(ftrl ? kernels->ftrl : kernels->adagrad) {}

  const Rule rule_;
  const std::vector<sparse::Slot> slots_;
  const bool ftrl_;
  const Kernels* const kernels_;
  float (*const step_)(const Rule&, float*, float*, const Row&, float, Scratch*);
};

}  // namespace shoal::learn::logistic
