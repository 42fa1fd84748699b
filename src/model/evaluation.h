// How good vectors are, by the two usual measures: agreement with people about the similarity of
// word pairs (WordSim-353, SimLex-999: Spearman's rho), and analogies (Google's questions-words,
// 3CosAdd, top 1). `shoal evaluate` and the benches call it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/vector_index.h"

namespace shoal::model {

struct PairSimilarity {
  double spearman = 0;  // NaN with fewer than two pairs, or where one side is constant
  uint64_t pairs = 0;   // both words known
  uint64_t skipped = 0;
};

struct AnalogySection {
  std::string name;
  uint64_t right = 0;
  uint64_t answered = 0;  // all four words among the restricted ones
  uint64_t asked = 0;
  double accuracy() const {
    return answered == 0 ? 0 : static_cast<double>(right) / static_cast<double>(answered);
  }
};

struct AnalogyResults {
  AnalogySection total, semantic, syntactic;  // syntactic: sections whose name begins with "gram"
  std::vector<AnalogySection> sections;       // in the file's order
};

// Pairs: "word, word, score" a line, separated by tabs, commas or semicolons; '#' begins a comment;
// one line at the top without a score is a heading. InvalidArgument names file and line.
Result<PairSimilarity> EvaluatePairs(const VectorIndex& index, const std::filesystem::path& file);

// Questions: "a b c d" a line, ": name" begins a section. Only the first `restrict_rows` rows (0:
// all) count as words of questions and as answers. Words are compared without regard to case.
Result<AnalogyResults> EvaluateAnalogies(const VectorIndex& index,
                                         const std::filesystem::path& file, uint64_t restrict_rows);

// Pearson's r of the ranks, equal values sharing the mean of their ranks. NaN if one side is
// constant or there are fewer than two. Sizes must be equal.
double Spearman(std::span<const double> a, std::span<const double> b);

}  // namespace shoal::model
