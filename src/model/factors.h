// A trained factorization machine: a linear model, and a vector of factors for each feature, whose
// products say what two features mean together (Rendle 2010). Without factors it is a linear model.
// learn/sparse trains and measures it, `shoal predict` reads it.
// Format: docs/formats/factors.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "model/linear.h"

namespace shoal::model {

inline constexpr uint32_t kMaxFactors = 1024;

struct FactorModel {
  LinearModel linear;
  uint32_t factors = 0;  // of a feature; 0: a linear model
  std::vector<float> v;  // [linear.weights.size() × factors], row-major; 0: never seen
  const float* Row(uint64_t feature) const { return v.data() + feature * factors; }
};

// Writes weights.bin (as SaveLinearModel), factors.bin if there are factors, and model.json with
// `facts`; with `text` weights.txt or, with factors, libfm.txt. The digest is equal for equal
// models.
Result<SavedModel> SaveFactorModel(const std::filesystem::path& directory, const FactorModel& model,
                                   const json::object& facts, bool text);

// A model directory, or the weights.bin of a linear model. NotFound; DataLoss for anything else
// than a whole model.
Result<FactorModel> ReadFactorModel(const std::filesystem::path& path);

// The bytes of factors.bin, and from them factors and v of a model whose linear part is there.
std::string EncodeFactors(const FactorModel& model);
// InvalidArgument says what is wrong; `model` is then unchanged.
Status DecodeFactors(std::string_view bytes, FactorModel* model);

}  // namespace shoal::model
