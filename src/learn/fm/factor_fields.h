// Parameters shared by factorization machines with and without fields.
#pragma once

#include <string_view>
#include <vector>

#include "learn/params/param_fields.h"

namespace shoal::learn::fm {

// Table entries for fm::Params or a derived struct. The defaults of the factors' parameters are
// given as texts and equal the initial values of the algorithm's Params.
struct FactorDefaults {
  std::string_view factors = "8";
  std::string_view factors_doc =
      "Factors of a feature: the rank of what two features mean together.";
  std::string_view alpha = "0.05";
  std::string_view beta = "0.03";
  std::string_view l2 = "0.0003";
  std::string_view init = "0.1";
};

template <typename Params>
std::vector<ParamField<Params>> FactorFields(const FactorDefaults& defaults) {
  using enum ParamType;
  return {
      {{"factors", "rank dim", kInt, 1, 256, false, "", defaults.factors, defaults.factors_doc},
       &Params::factors},
      {{"alpha", "lr", kReal, 0, 1e6, true, "", "0.7",
        "Learning rate of the weights (FTRL-proximal), as in logistic."},
       &Params::alpha},
      {{"beta", "", kReal, 0, 1e6, true, "", "0.03",
        "Keeps the first steps of the weights of rare features small."},
       &Params::beta},
      {{"l1", "lambda1", kReal, 0, 1e9, false, "", "0",
        "Weights whose gradients do not add up to this stay 0."},
       &Params::l1},
      {{"l2", "lambda2", kReal, 0, 1e9, false, "", "0", "Pulls the weights towards 0."},
       &Params::l2},
      {{"factor_alpha", "", kReal, 0, 1e6, true, "", defaults.alpha,
        "Learning rate of the factors (AdaGrad): a step is factor_alpha / (factor_beta + the root "
        "of the summed squared gradients)."},
       &Params::factor_alpha},
      {{"factor_beta", "", kReal, 0, 1e6, true, "", defaults.beta,
        "Keeps the first steps of the factors of rare features small."},
       &Params::factor_beta},
      {{"factor_l2", "", kReal, 0, 1e9, false, "", defaults.l2, "Pulls the factors towards 0."},
       &Params::factor_l2},
      {{"factor_init", "init", kReal, 0, 1e3, true, "", defaults.init,
        "Standard deviation of the random values that factors begin with."},
       &Params::factor_init},
  };
}

}  // namespace shoal::learn::fm
