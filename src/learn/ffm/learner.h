// A field-aware factorization machine as training on sparse examples knows it: learn/fm's learner
// with a vector a field, and other arithmetic for the pairs (kernels.h).
#pragma once

#include <memory>

#include "base/status.h"
#include "learn/ffm/params.h"
#include "learn/fm/learner.h"

namespace shoal::learn::ffm {

class FfmLearner final : public fm::FmLearner {
 public:
  // Of one field, until ForFields says how many there are. InvalidArgument for instructions that
  // this machine does not have.
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
