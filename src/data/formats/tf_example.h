// tf.train.Example: features by name, each a list of byte strings, floats or 64-bit integers, as a
// protocol buffer (tensorflow/core/example/example.proto and feature.proto).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace shoal::data {

using TfFeature = std::variant<std::vector<std::string>, std::vector<float>, std::vector<int64_t>>;
using TfExample = std::map<std::string, TfFeature>;

// DataLoss says what is wrong. Packed and unpacked lists are read; unknown fields are passed over;
// of a name that comes twice the last counts. A feature without a list is an empty list of bytes.
// O(bytes); allocates at most a multiple of them.
Result<TfExample> DecodeTfExample(std::string_view bytes);

// In order of the names, so that equal examples have equal bytes. Lists are packed.
std::string EncodeTfExample(const TfExample& example);

// {"name": [values]}; bytes that are not UTF-8 are escaped as text.
json::object ToJson(const TfExample& example);

}  // namespace shoal::data
