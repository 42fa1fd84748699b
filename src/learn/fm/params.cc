#include "learn/fm/params.h"

#include "learn/fm/factor_fields.h"
#include "learn/params/param_fields.h"

namespace shoal::learn::fm {

std::span<const ParamField<Params>> Params::Fields() {
  static const auto fields = sparse::WithCommonFields<Params>(FactorFields<Params>({}), "2");
  return fields;
}

}  // namespace shoal::learn::fm
