// A trained factorization machine: a linear model, and for each feature a vector of factors; the
// product of two vectors is the weight of the pair (Rendle 2010). Without factors it is a linear
// model. In a field-aware machine (Juan et al. 2016) a feature has one vector for each field of the
// other feature.
//
// learn/sparse trains and evaluates it; `shoal predict` reads it. Format: docs/formats/factors.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "model/linear_model.h"

namespace shoal::model {

inline constexpr uint32_t kMaxFactors = 1024;
inline constexpr uint32_t kMaxFields = 65536;
inline constexpr uint32_t kMaxFieldFactors = 1u << 18;  // factors × fields

// What a training needs beside a model to continue with the same steps: for each feature its weight
// before l1 has cut it, and the sums of squared gradients of that weight and of its factors.
struct OptimizerState {
  uint32_t width = 0;         // floats of a feature: 2 + factors; 0: there is no state
  ZeroedFloats rows;          // [linear.weights.size() × width], row-major; all 0: never seen
  std::vector<float> biases;  // two for each class
};

struct FactorModel {
  LinearModel linear;
  uint32_t factors = 0;       // length of a vector; 0: a linear model
  uint32_t fields = 0;        // field-aware: number of fields; 0: one vector a feature
  bool folds_fields = false;  // field numbers are taken modulo `fields`
  ZeroedFloats v;             // [linear.weights.size() × width()], row-major; 0: never seen
  OptimizerState optimizer;   // read by ReadOptimizerState only
  uint32_t width() const { return fields == 0 ? factors : fields * factors; }
  const float* Row(uint64_t feature) const { return v.data() + feature * width(); }
};

// Saves a model: weights.bin (as SaveLinearModel), factors.bin if there are factors, optimizer.bin
// if there is its state, model.json with `metadata`, and with `text` weights.txt, libfm.txt
// (factors) or xlearn.txt (fields). The digest is equal for equal models, whatever the optimizer's
// state. Errors as SaveModel and CheckFinite, which includes factors here.
Result<SavedModel> SaveFactorModel(const std::filesystem::path& directory, const FactorModel& model,
                                   const json::object& metadata, bool text);

// Reads a model directory, or the weights.bin of a linear model. NotFound; DataLoss for anything
// that is not a complete model.
Result<FactorModel> ReadFactorModel(const std::filesystem::path& path);

// Reads optimizer.bin of the directory that `model` was read from into model->optimizer. NotFound
// if there is none; DataLoss if it is not that of the model.
Status ReadOptimizerState(const std::filesystem::path& directory, FactorModel* model);

// The bytes of optimizer.bin, and the decoder for a model whose weights and factors are present.
std::string EncodeOptimizerState(const FactorModel& model);
// InvalidArgument says what is wrong; then `model` is unchanged.
Status DecodeOptimizerState(std::string_view bytes, FactorModel* model);

// The bytes of factors.bin, and the decoder, which sets factors and v of a model whose linear part
// is present.
std::string EncodeFactors(const FactorModel& model);
// InvalidArgument says what is wrong; then `model` is unchanged.
Status DecodeFactors(std::string_view bytes, FactorModel* model);

}  // namespace shoal::model
