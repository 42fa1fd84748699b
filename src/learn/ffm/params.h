// Parameters of a field-aware factorization machine: those of learn/fm with other defaults, and the
// number of fields.
#pragma once

#include <span>
#include <string_view>

#include "learn/fm/params.h"
#include "learn/params/param_fields.h"

namespace shoal::learn::ffm {

// Plain data; `factors` is the length of one vector; a feature has one vector for each field.
struct Params : fm::Params {
  static constexpr std::string_view kName = "ffm";
  static std::span<const ParamField<Params>> Fields();  // static storage

  Params();
};

}  // namespace shoal::learn::ffm
