// A factorization machine of order 2 for training on sparse examples: weights by FTRL-proximal,
// factors by AdaGrad, in one state (kernels.h).
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
  // InvalidArgument for instructions that this machine lacks.
  static Result<FmLearner> Make(const Params& params);

  uint32_t width() const override { return rule_.width(); }
  float Step(float* state, float* bias, const Row& row, float label,
             Scratch* scratch) const override;
  const sparse::Loss& loss() const override { return linear_rule_.loss; }
  float MarginOf(const float* state, const float* bias, const Row& row,
                 Scratch* scratch) const override;
  void StepBy(float* state, float* bias, const Row& row, float error,
              Scratch* scratch) const override;
  // Features that occur in no example have weight and factors 0.
  model::FactorModel EmptyModel(uint64_t features) const override;
  void FillModel(const float* state, uint64_t first, uint64_t count,
                 model::FactorModel* model) const override;
  float BiasOf(const float* bias) const override;
  const std::vector<sparse::Slot>& slots() const override { return slots_; }
  float Gradients(const float* weights, const float* shift, const Row& row, float* gradients,
                  float* shifted) const override;
  float InitialWeight(uint32_t feature, size_t slot) const override;

 protected:
  // For learn/ffm: with `kernels` for the pairs, and with vectors for `fields` fields unless that
  // is 0.
  FmLearner(const Params& params, uint32_t fields, const logistic::Kernels* linear,
            const Kernels* kernels);

  const logistic::Rule linear_rule_;
  const Rule rule_;

 private:
  // Gradients of the pairs, after those of the weights. Returns the pairs' part of the margin, and
  // adds the same with the weights moved by `shift` to `*shifted`.
  float FieldGradients(const float* weights, const float* shift, const Row& row, float* gradients,
                       float* shifted) const;

  const std::vector<sparse::Slot> slots_;
  const logistic::Kernels* const linear_;
  const Kernels* const kernels_;
};

}  // namespace shoal::learn::fm
