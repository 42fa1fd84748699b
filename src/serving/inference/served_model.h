// One version of a model in memory, ready to answer: a linear model or factorization machine, or
// word vectors. Loaded by model_server.h's owner, used by all its requests at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "learn/sparse/prediction/scorer.h"
#include "model/vector_index.h"

namespace shoal::serving {

// Word vectors: the index searches unit vectors, so the vectors as they were trained are kept too.
struct ServedVectors {
  model::VectorIndex index;
  std::vector<float> values;  // [rows × dim], row-major
  std::span<const float> Row(uint64_t row) const {
    return {values.data() + row * index.dim(), static_cast<size_t>(index.dim())};
  }
};

// Immutable; thread-safe.
class ServedModel {
 public:
  // Reads a model directory. `version`: its number in the registry, 0 for none. NotFound, DataLoss
  // and the other errors of the model's reader.
  static Result<std::shared_ptr<const ServedModel>> Load(const std::filesystem::path& directory,
                                                         std::string name, uint64_t version);

  const std::string& name() const { return name_; }
  uint64_t version() const { return version_; }
  const std::string& format() const { return format_; }  // of model.json
  // Exactly one of them is not null.
  const learn::sparse::Scorer* scorer() const { return scorer_ ? &*scorer_ : nullptr; }
  const ServedVectors* vectors() const { return vectors_ ? &*vectors_ : nullptr; }

 private:
  ServedModel() = default;

  std::string name_;
  uint64_t version_ = 0;
  std::string format_;
  std::optional<learn::sparse::Scorer> scorer_;
  std::optional<ServedVectors> vectors_;
};

}  // namespace shoal::serving
