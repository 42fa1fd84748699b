// Exact cosine search over all vectors, with SIMD. Used by `shoal nearest`, `shoal analogy` and the
// evaluation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "model/vectors.h"

namespace shoal::model {

struct Neighbour {
  uint64_t row = 0;
  float similarity = 0;  // cosine, in [-1, 1]
};

// Unit-length copies of vectors, and an index of their words. Immutable; all calls are thread-safe.
class VectorIndex {
 public:
  // NaN and infinity are replaced by 0 and their rows counted; rows of length 0 stay 0.
  explicit VectorIndex(Vectors vectors);

  uint64_t rows() const { return words_.size(); }
  uint64_t dim() const { return dim_; }
  uint64_t nonfinite_rows() const { return nonfinite_rows_; }
  const std::string& word(uint64_t row) const { return words_[row]; }
  std::span<const float> unit(uint64_t row) const { return {units_.data() + row * stride_, dim_}; }

  // Finds a word exactly, else ignoring case (the most frequent match).
  std::optional<uint64_t> Find(std::string_view word) const;
  // Finds a word ignoring case only, as the evaluation requires.
  std::optional<uint64_t> FindIgnoringCase(std::string_view word) const;
  // The most similar word for error messages: smallest edit distance (at most a third of the
  // length), then the most frequent. O(rows).
  std::optional<std::string> Suggest(std::string_view word) const;

  // The k rows with the largest cosine to `query` [dim], descending, ties by row, without the
  // `excluded` rows. O(rows · dim).
  std::vector<Neighbour> Nearest(std::span<const float> query, size_t k,
                                 std::span<const uint64_t> excluded) const;
  // For each of n queries [n × dim] the row < limit with the largest dot product, without its three
  // excluded rows [n × 3]; the first of equals. Blocked: about a third of the core's peak.
  void BestRows(std::span<const float> queries, std::span<const uint64_t> excluded, uint64_t limit,
                std::span<uint64_t> best) const;

 private:
  std::vector<std::string> words_;
  uint64_t dim_ = 0;
  uint64_t stride_ = 0;       // dim_ rounded up to 16 floats; the rest of a row is 0
  std::vector<float> units_;  // [rows × stride_]
  uint64_t nonfinite_rows_ = 0;
  std::unordered_map<std::string, uint64_t> exact_;
  std::unordered_map<std::string, uint64_t> folded_;
};

// The k rows nearest to the mean of the words' unit vectors, without the words themselves.
// NotFound, with a suggestion, for an unknown word.
Result<std::vector<Neighbour>> NearestWords(const VectorIndex& index,
                                            std::span<const std::string> words, size_t k);
// The analogy "a is to b as c is to …": the k rows nearest to b − a + c (3CosAdd; Mikolov et al.
// 2013), without a, b and c.
Result<std::vector<Neighbour>> Analogy(const VectorIndex& index, std::string_view a,
                                       std::string_view b, std::string_view c, size_t k);

}  // namespace shoal::model
