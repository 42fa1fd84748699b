// A factorization machine of order 2 as training on sparse examples knows it: weights by
// FTRL-proximal, factors by AdaGrad, one state for both (kernels.h).
#pragma once

#include <vector>

#include "base/status.h"
#include "learn/fm/kernels.h"
#include "learn/fm/params.h"
#include "learn/logistic/kernels.h"
#include "learn/sparse/learner.h"

namespace shoal::learn::fm {

class FmLearner : public sparse::Learner {
 public:
  // InvalidArgument for instructions that this machine does not have.
  static Result<FmLearner> Make(const Params& params);

  uint32_t width() const override { return rule_.width(); }
  float Step(float* state, float* bias, const Row& row, float label,
             Scratch* scratch) const override;
  // Features that no example had have weight and factors 0.
  model::FactorModel EmptyModel(uint64_t features) const override;
  void FillModel(const float* state, uint64_t first, uint64_t count,
                 model::FactorModel* model) const override;
  float BiasOf(const float* bias) const override;
  const std::vector<sparse::Slot>& slots() const override { return slots_; }
  float Gradients(const float* weights, const Row& row, float* gradients) const override;

 protected:
  // With `kernels` for the pairs, and vectors for `fields` fields unless that is 0.
  FmLearner(const Params& params, uint32_t fields, const logistic::Kernels* linear,
            const Kernels* kernels);

  const logistic::Rule linear_rule_;
  const Rule rule_;

 private:
  // Those of the pairs, behind the weights'. Give what the pairs bring to the margin.
  float PairGradients(const float* weights, const Row& row, float* gradients) const;
  float FieldGradients(const float* weights, const Row& row, float* gradients) const;

  const std::vector<sparse::Slot> slots_;
  const logistic::Kernels* const linear_;
  const Kernels* const kernels_;
};

}  // namespace shoal::learn::fm
