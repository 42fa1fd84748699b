#include "learn/fm/params.h"

#include "learn/fields.h"
#include "learn/fm/factor_fields.h"

namespace shoal::learn::fm {

std::span<const FieldOf<Params>> Params::Fields() {
  static const auto fields = sparse::WithCommonFields<Params>(FactorFields<Params>({}), "2");
  return fields;
}

}  // namespace shoal::learn::fm
