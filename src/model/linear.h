// A trained linear model: one weight a feature, and how an example's features and values become
// those that the weights are for. The linear trainers save it, `shoal predict` reads it.
// Format: docs/formats/linear-model.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "model/save.h"

namespace shoal::model {

inline constexpr uint64_t kMaxLinearWeights = 1ull << 32;

struct LinearModel {
  std::vector<float> weights;  // of feature 0, 1, …; features beyond have weight 0
  float bias = 0;
  uint32_t hash_bits = 0;  // 0: features keep their numbers
  bool normalize = false;  // examples are divided by their Euclidean length
};

// Writes weights.bin, model.json with `facts`, and with `text` weights.txt, as SaveModel does.
// The digest is that of weights.bin: equal for equal models.
Result<SavedModel> SaveLinearModel(const std::filesystem::path& directory, const LinearModel& model,
                                   const json::object& facts, bool text);

// weights.bin of a model directory, or that file. NotFound; DataLoss for anything else than a whole
// model. Memory is taken only for what the file really holds and for the weights up to the last.
Result<LinearModel> ReadLinearModel(const std::filesystem::path& path);

// The bytes of weights.bin.
std::string EncodeLinearModel(const LinearModel& model);
// InvalidArgument says what is wrong.
Result<LinearModel> DecodeLinearModel(std::string_view bytes);

}  // namespace shoal::model
