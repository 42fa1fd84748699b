// A trained linear model: one weight a feature, and how an example's features and values become
// those that the weights are for. The linear trainers save it, `shoal predict` reads it.
// Format: docs/formats/linear-model.md.
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

inline constexpr uint64_t kMaxLinearWeights = 1ull << 32;
// So many weights are believed of a file whose entries may be few.
inline constexpr uint64_t kMaxUnbackedWeights = 1ull << 28;

// Memory that begins as zeros and costs nothing where nobody writes: of features that are hashed,
// most do not exist. For vectors that are made with their size and do not grow again.
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
  ZeroedFloats weights;  // of feature 0, 1, …; features beyond have weight 0
  float bias = 0;
  uint32_t hash_bits = 0;  // 0: features keep their numbers
  bool normalize = false;  // examples are divided by their Euclidean length
};

// FailedPrecondition where a weight is NaN or infinite, as after a training that diverged: no
// reader takes such a model.
Status CheckFinite(const LinearModel& model);

// Writes weights.bin, model.json with `metadata`, and with `text` weights.txt, as SaveModel does.
// The digest is that of weights.bin: equal for equal models. Errors also as CheckFinite.
Result<SavedModel> SaveLinearModel(const std::filesystem::path& directory, const LinearModel& model,
                                   const json::object& metadata, bool text);

// weights.bin of a model directory, or that file. NotFound; DataLoss for anything else than a whole
// model. Memory is taken for the file and for the pages of the weights that it holds; a file that
// names features for whose range there is no address space is DataLoss too.
Result<LinearModel> ReadLinearModel(const std::filesystem::path& path);

// The bytes of weights.bin.
std::string EncodeLinearModel(const LinearModel& model);
// InvalidArgument says what is wrong. More than `believed` features must have entries to go with
// them: bytes from strangers could otherwise make a vector of 16 GiB from nothing.
Result<LinearModel> DecodeLinearModel(std::string_view bytes,
                                      uint64_t believed = kMaxUnbackedWeights);

}  // namespace shoal::model
