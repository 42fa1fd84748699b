#include "learn/ffm/params.h"

#include "learn/fm/factor_fields.h"
#include "learn/params/param_fields.h"

namespace shoal::learn::ffm {
namespace {

constexpr fm::FactorDefaults kDefaults = {
    .factors = "4",
    .factors_doc = "Factors of a feature towards each field.",
    .alpha = "0.5",
    .beta = "1",
    .l2 = "0.0001",
    .init = "0.2",
};

std::vector<ParamField<Params>> OwnFields() {
  auto fields = fm::FactorFields<Params>(kDefaults);
  fields.push_back(
      {{"fields", "", ParamType::kInt, 0, 65536, false, "", "0",
        "Fields are taken modulo this; 0: as many as the data has, numbered below 65536."},
       &Params::fields});
  return fields;
}

}  // namespace

Params::Params() {
  keep_fields = true;
  epochs = 4;
  factors = 4;
  factor_alpha = 0.5;
  factor_beta = 1;
  factor_l2 = 0.0001;
  factor_init = 0.2;
}

std::span<const ParamField<Params>> Params::Fields() {
  static const auto fields = sparse::WithCommonFields<Params>(OwnFields(), "4");
  return fields;
}

}  // namespace shoal::learn::ffm
