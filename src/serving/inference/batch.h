// The instances of one request as examples of its model, and their scores. Private to this folder.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "learn/sparse/prediction/scorer.h"
#include "serving/inference/inference.h"
#include "serving/inference/served_model.h"

namespace shoal::serving {

// A column of a request that has columns and not rows. Slices are JSON.
struct InputColumn {
  std::string name;
  std::vector<std::string_view> values;  // as many in each column
};

// Each instance is an object with a field for each column, or of models without columns a text
// "3:1 7:0.5". Errors name the instance; unknown columns are errors with the nearest name.
Result<learn::sparse::Scores> ScoreRows(const learn::sparse::Scorer& scorer,
                                        std::span<const std::string_view> instances);
// The same of a model with columns, from columns. InvalidArgument if their lengths differ.
Result<learn::sparse::Scores> ScoreColumns(const learn::sparse::Scorer& scorer,
                                           std::span<const InputColumn> columns);

// Numbers of score `i` as `shoal predict` prints them: one, or of several classes an array.
void AppendScore(const learn::sparse::Scorer& scorer, const learn::sparse::Scores& scores, size_t i,
                 std::string* to);
// "[1,2.5]": the shortest decimals that read back as the same floats.
void AppendFloats(std::span<const float> values, std::string* to);

// A word's row. NotFound with the nearest word.
Result<uint64_t> RowOfWord(const ServedVectors& vectors, std::string_view word);
// Neighbours of a word, without itself, or of a vector.
Result<std::vector<model::Neighbour>> NearestTo(const ServedVectors& vectors, std::string_view word,
                                                size_t count);
// `slice`: a JSON array of dim finite numbers.
Result<std::vector<float>> VectorOf(const ServedVectors& vectors, std::string_view slice);

// An error of instance `i`.
Status OfInstance(size_t i, const Status& status);

// The number in [1, most] of a member such as "top", or 10 if there is none. InvalidArgument.
Result<size_t> CountOf(const std::string_view* slice, size_t most);

}  // namespace shoal::serving
