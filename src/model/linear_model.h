// A trained linear model: one weight for each feature, and how features and values of an example
// are mapped to those of the weights. The trainers on sparse examples save it, `shoal predict`
// reads it. Format: docs/formats/linear-model.md.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "model/save_model.h"

namespace shoal::model {

class ModelFiles;

inline constexpr uint32_t kMaxModelClasses = 1u << 16;
inline constexpr uint64_t kMaxLinearWeights = 1ull << 32;
// The largest range of features that is accepted from a file with few entries.
inline constexpr uint64_t kMaxUnbackedWeights = 1ull << 28;

// An allocator of zeroed memory whose untouched pages cost nothing: most hashed features do not
// exist. For vectors that are created with their final size.
template <typename T>
struct ZeroedAllocator {
  using value_type = T;
  T* allocate(size_t n) {
    void* const made = std::calloc(n, sizeof(T));
    if (made == nullptr) throw std::bad_alloc();
    return static_cast<T*>(made);
  }
  void deallocate(T* at, size_t) { std::free(at); }
  template <typename U>
  void construct(U*) {}  // calloc has done it
  template <typename U, typename... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
  bool operator==(const ZeroedAllocator&) const { return true; }
};
using ZeroedFloats = std::vector<float, ZeroedAllocator<float>>;

struct LinearModel {
  ZeroedFloats weights;  // by feature; features beyond the end have weight 0
  float bias = 0;
  // Of several classes: one bias for each, and the weight of feature f for class c of K at f·K + c.
  // Empty: there is one weight a feature.
  std::vector<float> biases;
  uint64_t classes() const { return biases.empty() ? 1 : biases.size(); }
  // All features of examples are below.
  uint64_t features() const { return weights.size() / classes(); }
  uint32_t hash_bits = 0;  // 0: features keep their numbers
  bool normalize = false;  // examples are divided by their Euclidean length
};

// FailedPrecondition if a weight is NaN or infinite, which no reader accepts: the training
// diverged.
Status CheckFinite(const LinearModel& model);

// Saves a model as SaveModel does: weights.bin, model.json with `metadata`, and with `text`
// weights.txt. The digest is that of weights.bin, equal for equal models. Errors as SaveModel and
// CheckFinite.
Result<SavedModel> SaveLinearModel(const std::filesystem::path& directory, const LinearModel& model,
                                   const json::object& metadata, bool text);

// The same files but model.json, for a model with more of them. Returns the digest.
Result<std::string> AddLinearFiles(ModelFiles& files, const LinearModel& model, bool text);

// Reads the weights.bin of a model directory, or that file. NotFound; DataLoss for anything that is
// not a complete model, or names features beyond the available address space. Takes memory for the
// file and for the pages of weights with entries.
Result<LinearModel> ReadLinearModel(const std::filesystem::path& path);

// The bytes of weights.bin.
std::string EncodeLinearModel(const LinearModel& model);
// Decodes weights.bin. InvalidArgument says what is wrong. A range of more than `max_unbacked`
// features must be backed by entries: otherwise a few bytes could claim a vector of 16 GiB.
Result<LinearModel> DecodeLinearModel(std::string_view bytes,
                                      uint64_t max_unbacked = kMaxUnbackedWeights);

}  // namespace shoal::model
