// A trained factorization machine: a linear model, and a vector of factors for each feature, whose
// products say what two features mean together (Rendle 2010). Without factors it is a linear model;
// field-aware (Juan et al. 2016), a feature has a vector for each field that it can meet.
// learn/sparse trains and measures it, `shoal predict` reads it.
// Format: docs/formats/factors.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "model/linear_model.h"

namespace shoal::model {

inline constexpr uint32_t kMaxFactors = 1024;
inline constexpr uint32_t kMaxFields = 65536;
inline constexpr uint32_t kMaxFieldFactors = 1u << 18;  // factors × fields

struct FactorModel {
  LinearModel linear;
  uint32_t factors = 0;       // of a vector; 0: a linear model
  uint32_t fields = 0;        // of field-aware machines; 0: a feature has one vector
  bool folds_fields = false;  // field numbers are taken modulo `fields`
  ZeroedFloats v;             // [linear.weights.size() × width()], row-major; 0: never seen
  uint32_t width() const { return fields == 0 ? factors : fields * factors; }
  const float* Row(uint64_t feature) const { return v.data() + feature * width(); }
};

// Writes weights.bin (as SaveLinearModel), factors.bin if there are factors, and model.json with
// `metadata`; with `text` weights.txt or, with factors, libfm.txt or, with fields, xlearn.txt. The
// digest is equal for equal models. Errors also as CheckFinite, for factors too.
Result<SavedModel> SaveFactorModel(const std::filesystem::path& directory, const FactorModel& model,
                                   const json::object& metadata, bool text);

// A model directory, or the weights.bin of a linear model. NotFound; DataLoss for anything else
// than a whole model.
Result<FactorModel> ReadFactorModel(const std::filesystem::path& path);

// The bytes of factors.bin, and from them factors and v of a model whose linear part is there.
std::string EncodeFactors(const FactorModel& model);
// InvalidArgument says what is wrong; `model` is then unchanged.
Status DecodeFactors(std::string_view bytes, FactorModel* model);

}  // namespace shoal::model
