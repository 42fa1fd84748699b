#include "learn/fm/params.h"

#include "learn/fields.h"

namespace shoal::learn::fm {
namespace {

using Field = FieldOf<Params>;
using enum ParamType;

std::vector<Field> OwnFields() {
  return {
      {{"factors", "rank dim", kInt, 1, 256, false, "", "8",
        "Factors of a feature: the rank of what two features mean together."},
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
      {{"factor_alpha", "", kReal, 0, 1e6, true, "", "0.05",
        "Learning rate of the factors (AdaGrad): a step is factor_alpha / (factor_beta + the root "
        "of the summed squared gradients)."},
       &Params::factor_alpha},
      {{"factor_beta", "", kReal, 0, 1e6, true, "", "0.03",
        "Keeps the first steps of the factors of rare features small."},
       &Params::factor_beta},
      {{"factor_l2", "", kReal, 0, 1e9, false, "", "0.0003", "Pulls the factors towards 0."},
       &Params::factor_l2},
      {{"factor_init", "init", kReal, 0, 1e3, true, "", "0.1",
        "Standard deviation of the random values that factors begin with."},
       &Params::factor_init},
  };
}

std::span<const Field> Fields() {
  static const std::vector<Field> fields = sparse::WithCommonFields<Params>(OwnFields(), "2");
  return fields;
}

}  // namespace

std::span<const Param> ParamTable() {
  static const std::vector<Param> table = TableOf(Fields());
  return table;
}

Result<Params> Parse(const std::map<std::string, job::LearnValue>& learn, std::string_view file) {
  Params params;
  TRY(ParseFields(Fields(), learn, file, &params));
  TRY(OneThreadIfDeterministic(params, learn, file));
  return params;
}

std::map<std::string, std::string> ToText(const Params& params) {
  return FieldsToText(Fields(), params);
}

}  // namespace shoal::learn::fm
