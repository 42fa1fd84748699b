// A field-aware factorization machine's parameters: those of learn/fm with defaults of its own, and
// the number of fields.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "learn/fm/params.h"

namespace shoal::learn::ffm {

// Plain data; `factors` are those of one vector, of which a feature has one for each field.
struct Params : fm::Params {
  Params();
};

// Constant, lives for ever.
std::span<const Param> ParamTable();

// Values in range. Errors as ParseParams.
Result<Params> Parse(const std::map<std::string, job::LearnValue>& learn, std::string_view file);

// Every parameter as name → text that Parse takes back; for model.json.
std::map<std::string, std::string> ToText(const Params& params);

}  // namespace shoal::learn::ffm
