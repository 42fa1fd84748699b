// Evaluates word vectors by the two usual measures: correlation with human judgements of word
// similarity (WordSim-353, SimLex-999: Spearman's rho), and analogies (Google's questions-words,
// 3CosAdd, top 1). Used by `shoal evaluate` and the benchmarks.
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
  uint64_t pairs = 0;   // pairs with two known words
  uint64_t skipped = 0;
};

struct AnalogySection {
  std::string name;
  uint64_t right = 0;
  uint64_t answered = 0;  // questions whose four words are among the first rows
  uint64_t asked = 0;
  double accuracy() const {
    return answered == 0 ? 0 : static_cast<double>(right) / static_cast<double>(answered);
  }
};

struct AnalogyResults {
  AnalogySection total, semantic, syntactic;  // syntactic: sections whose name begins with "gram"
  std::vector<AnalogySection> sections;       // in the file's order
};

// Evaluates a file of pairs: "word, word, score" a line, separated by tabs, commas or semicolons;
// '#' begins a comment; one heading line without a score is allowed. InvalidArgument names file and
// line.
Result<PairSimilarity> EvaluatePairs(const VectorIndex& index, const std::filesystem::path& file);

// Evaluates a file of questions: "a b c d" a line; ": name" begins a section. Only the first
// `restrict_rows` rows (0: all) count as words of questions and as answers. Case is ignored.
Result<AnalogyResults> EvaluateAnalogies(const VectorIndex& index,
                                         const std::filesystem::path& file, uint64_t restrict_rows);

// Spearman's rho: Pearson's r of the ranks, where equal values share their mean rank. NaN for fewer
// than two values, or if one side is constant. Sizes must be equal.
double Spearman(std::span<const double> a, std::span<const double> b);

}  // namespace shoal::model
