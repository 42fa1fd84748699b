#include "learn/logistic/params.h"

#include "learn/params/param_fields.h"

namespace shoal::learn::logistic {

Params::Params() { epochs = 0; }

std::span<const ParamField<Params>> Params::Fields() {
  using enum ParamType;
  static const auto fields = sparse::WithCommonFields<Params>(
      {
          {{"optimizer", "", kChoice, 0, 0, false, "ftrl adagrad", "ftrl",
            "FTRL-proximal (McMahan et al. 2013) or AdaGrad (Duchi et al. 2011)."},
           &Params::optimizer},
          {{"alpha", "lr", kReal, 0, 1e6, true, "", "0.7",
            "Learning rate: a weight's step is alpha / (beta + the root of its summed squared "
            "gradients)."},
           &Params::alpha},
          {{"beta", "", kReal, 0, 1e6, true, "", "0.03",
            "Keeps the first steps of rare features small; near the gradient of one example."},
           &Params::beta},
          {{"l1", "lambda1", kReal, 0, 1e9, false, "", "0",
            "Weights whose gradients do not add up to this stay 0: a sparse model."},
           &Params::l1},
          {{"l2", "lambda2", kReal, 0, 1e9, false, "", "0", "Pulls the weights towards 0."},
           &Params::l2},
      },
      "auto");
  return fields;
}

}  // namespace shoal::learn::logistic
