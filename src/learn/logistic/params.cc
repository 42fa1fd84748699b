#include "learn/logistic/params.h"

#include "learn/params/param_fields.h"

namespace shoal::learn::logistic {

namespace {

template <typename P>
std::vector<ParamField<P>> FieldsOf(std::string_view loss) {
  using enum ParamType;
  return sparse::WithCommonFields<P>(
      {
          {{"optimizer", "", kChoice, 0, 0, false, "ftrl adagrad", "ftrl",
            "FTRL-proximal (McMahan et al. 2013) or AdaGrad (Duchi et al. 2011)."},
           &P::optimizer},
          {{"alpha", "lr", kReal, 0, 1e6, true, "", "0.7",
            "Learning rate: a weight's step is alpha / (beta + the root of its summed squared "
            "gradients)."},
           &P::alpha},
          {{"beta", "", kReal, 0, 1e6, true, "", "0.03",
            "Keeps the first steps of rare features small; near the gradient of one example."},
           &P::beta},
          {{"l1", "lambda1", kReal, 0, 1e9, false, "", "0",
            "Weights whose gradients do not add up to this stay 0: a sparse model."},
           &P::l1},
          {{"l2", "lambda2", kReal, 0, 1e9, false, "", "0", "Pulls the weights towards 0."},
           &P::l2},
      },
      "auto", loss);
}

}  // namespace

Params::Params() {
  epochs = 0;
  loss = "logistic";
}

std::span<const ParamField<Params>> Params::Fields() {
  static const auto fields = FieldsOf<Params>("logistic");
  return fields;
}

std::span<const ParamField<LinearParams>> LinearParams::Fields() {
  static const auto fields = FieldsOf<LinearParams>("auto");
  return fields;
}

}  // namespace shoal::learn::logistic
