#include "learn/ffm/learner.h"

#include <fmt/format.h>

#include "learn/ffm/kernels.h"
#include "learn/logistic/kernels.h"

namespace shoal::learn::ffm {

Result<FfmLearner> FfmLearner::Make(const Params& params) {
  TRY_ASSIGN(const fm::Kernels* kernels, ChooseKernels(params.simd));
  TRY_ASSIGN(const logistic::Kernels* linear, logistic::ChooseKernels(params.simd));
  return FfmLearner(params, 1, linear, kernels);
}

Result<std::unique_ptr<sparse::Learner>> FfmLearner::ForFields(uint32_t fields) const {
  const uint64_t factors = static_cast<uint64_t>(params_.factors);
  if (fields * factors > model::kMaxFieldFactors) {
    return InvalidArgument(fmt::format(
        "the data has fields up to {}: with factors {} that is {} numbers a feature, expected at "
        "most {}; number the fields from 0 on, or set `fields` to take them modulo that",
        fields - 1, factors, fields * factors, model::kMaxFieldFactors));
  }
  TRY_ASSIGN(const fm::Kernels* kernels, ChooseKernels(params_.simd));
  TRY_ASSIGN(const logistic::Kernels* linear, logistic::ChooseKernels(params_.simd));
  return std::unique_ptr<sparse::Learner>(
      new FfmLearner(params_, std::max(fields, 1u), linear, kernels));
}

model::FactorModel FfmLearner::EmptyModel(uint64_t features) const {
  model::FactorModel model = FmLearner::EmptyModel(features);
  model.folds_fields = params_.fields > 0;
  return model;
}

}  // namespace shoal::learn::ffm
