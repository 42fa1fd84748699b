// Parameters of a factorization machine: the table for file, flags, documentation and model.json,
// and the struct that the trainer reads.
#pragma once

#include <span>
#include <string_view>

#include "learn/params/param_fields.h"
#include "learn/sparse/params.h"

namespace shoal::learn::fm {

// Plain data. alpha, beta, l1 and l2 apply to the weights, as in logistic regression.
struct Params : sparse::CommonParams {
  static constexpr std::string_view kName = "fm";
  static std::span<const ParamField<Params>> Fields();  // static storage

  int64_t factors = 8;
  double alpha = 0.7;
  double beta = 0.03;
  double l1 = 0;
  double l2 = 0;
  double factor_alpha = 0.05;
  double factor_beta = 0.03;
  double factor_l2 = 0.0003;
  double factor_init = 0.1;
};

}  // namespace shoal::learn::fm
