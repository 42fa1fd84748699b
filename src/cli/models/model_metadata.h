// Reads of a model's model.json that `shoal show` and `shoal report` have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace shoal::cli {

// A field as text, which may not be UTF-8; empty if there is none.
std::string MetadataText(const json::object& object, std::string_view name);
// The texts of a list; `object` may be null.
std::vector<std::string> MetadataList(const json::object* object, std::string_view name);
// "AUC 0.93, log-loss 0.31": the measures of a `held_out` or `validation`.
std::string MeasuresText(const json::object& quality);
// What the effect of a feature is a change of, by the loss.
std::string EffectUnit(std::string_view loss);

}  // namespace shoal::cli
