// A field-aware factorization machine's parameters: those of learn/fm with defaults of its own, and
// the number of fields.
#pragma once

#include <span>
#include <string_view>

#include "learn/fm/params.h"
#include "learn/params/param_fields.h"

namespace shoal::learn::ffm {

// Plain data; `factors` are those of one vector, of which a feature has one for each field.
struct Params : fm::Params {
  static constexpr std::string_view kName = "ffm";
  static std::span<const ParamField<Params>> Fields();  // constant, lives for ever

  Params();
};

}  // namespace shoal::learn::ffm
