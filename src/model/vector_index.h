// Which words are near: exact cosine search over all vectors, with SIMD. `shoal nearest`, `shoal
// analogy` and the evaluation stand on it.
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

// Unit-length copies of vectors and an index of their words. Immutable: const calls are
// thread-safe.
class VectorIndex {
 public:
  // Rows that hold NaN or infinity have those values set to 0 and are counted; rows of length 0
  // stay 0.
  explicit VectorIndex(Vectors vectors);

  uint64_t rows() const { return words_.size(); }
  uint64_t dim() const { return dim_; }
  uint64_t nonfinite_rows() const { return nonfinite_rows_; }
  const std::string& word(uint64_t row) const { return words_[row]; }
  std::span<const float> unit(uint64_t row) const { return {units_.data() + row * stride_, dim_}; }

  // As written, else without regard to case (the first, that is most frequent,
  // row).
  std::optional<uint64_t> Find(std::string_view word) const;
  // Only without regard to case, as the evaluation does it.
  std::optional<uint64_t> FindIgnoringCase(std::string_view word) const;
  // The word most like it: smallest edit distance (at most a third of its length), then the more
  // frequent. For messages. O(rows).
  std::optional<std::string> Suggest(std::string_view word) const;

  // The k rows of largest cosine with `query` [dim], falling, ties by row; without the `excluded`.
  // O(rows · dim).
  std::vector<Neighbour> Nearest(std::span<const float> query, size_t k,
                                 std::span<const uint64_t> excluded) const;
  // For each of n queries [n × dim] the row < limit of largest dot product that is not one of its
  // three excluded ones [n × 3]; the first of equals. Blocked: about a third of the core's peak.
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

// The k rows nearest to the mean of the words' unit vectors, themselves excluded. NotFound with a
// suggestion if a word is not in the vocabulary.
Result<std::vector<Neighbour>> NearestWords(const VectorIndex& index,
                                            std::span<const std::string> words, size_t k);
// a is to b as c is to …: the k rows nearest to b − a + c (3CosAdd; Mikolov et al. 2013), the
// three excluded.
Result<std::vector<Neighbour>> Analogy(const VectorIndex& index, std::string_view a,
                                       std::string_view b, std::string_view c, size_t k);

}  // namespace shoal::model
