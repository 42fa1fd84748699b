// A field-aware factorization machine for training on sparse examples: learn/fm's learner with one
// vector for each field, and its own arithmetic for pairs (kernels.h).
#pragma once

#include <memory>

#include "base/status.h"
#include "learn/ffm/params.h"
#include "learn/fm/learner.h"

namespace shoal::learn::ffm {

class FfmLearner final : public fm::FmLearner {
 public:
  // Has one field until ForFields. InvalidArgument for instructions that this machine lacks.
  static Result<FfmLearner> Make(const Params& params);

  uint32_t fields() const override { return rule_.fields; }
  // InvalidArgument if a feature would have more than model::kMaxFieldFactors factors.
  Result<std::unique_ptr<sparse::Learner>> ForFields(uint32_t fields) const override;
  model::FactorModel EmptyModel(uint64_t features) const override;

 private:
  FfmLearner(const Params& params, uint32_t fields, const logistic::Kernels* linear,
             const fm::Kernels* kernels)
      : FmLearner(params, fields, linear, kernels), params_(params) {}

  const Params params_;
};

}  // namespace shoal::learn::ffm
