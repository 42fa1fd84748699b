#include "serving/inference/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <iterator>
#include <new>

#include "base/utf8.h"
#include "data/examples/example_input.h"
#include "job/text/errors.h"
#include "serving/inference/json_slices.h"

namespace shoal::serving {
namespace {

using learn::sparse::Scorer;
using learn::sparse::Scores;

constexpr size_t kListed = 12;

Status CheckColumns(const Scorer& scorer, const data::ExampleInput& input) {
  if (input.unknown().empty()) return Status::Ok();
  const std::string name = *input.unknown().begin();
  const std::vector<std::string>& columns = scorer.columns();
  const auto end = columns.begin() + std::min<std::ptrdiff_t>(kListed, std::ssize(columns));
  const std::string near = job::DidYouMean(name, columns);
  return InvalidArgument(EscapedUtf8(fmt::format(
      "the model has no column '{}'{} Its columns are {}{}", name, near.empty() ? "." : near,
      fmt::join(columns.begin(), end, ", "), columns.size() > kListed ? ", …" : "")));
}

Status AddInstance(std::string_view slice, data::ExampleInput* input) {
  if (slice.front() == '{') return input->AddObject(slice);
  const auto text = TextOfSlice(slice);
  if (text.ok()) return input->AddLine(*text);
  return InvalidArgument(
      "an instance is an object with a field for each column, or of a model without columns a text "
      "such as \"3:1 7:0.5\"");
}

Result<Scores> Finish(const Scorer& scorer, const data::ExampleInput& input,
                      data::ExampleSet* set) {
  TRY(CheckColumns(scorer, input));
  learn::sparse::Scratch scratch;
  return scorer.Score(set, &scratch);
}

}  // namespace

Status OfInstance(size_t i, const Status& status) {
  return status.ok() ? status : status.With(fmt::format("instance {}", i));
}

Result<Scores> ScoreRows(const Scorer& scorer, std::span<const std::string_view> instances) try {
  data::ExampleSet set;
  data::ExampleInput input(scorer.options(), &set);
  for (size_t i = 0; i < instances.size(); ++i) {
    TRY(OfInstance(i, AddInstance(instances[i], &input)));
  }
  return Finish(scorer, input, &set);
} catch (const std::bad_alloc&) {
  return ResourceExhausted("there is not enough memory for the request's instances");
}

Result<Scores> ScoreColumns(const Scorer& scorer, std::span<const InputColumn> columns) try {
  data::ExampleSet set;
  data::ExampleInput input(scorer.options(), &set);
  const size_t rows = columns.empty() ? 0 : columns.front().values.size();
  for (const InputColumn& column : columns) {
    if (column.values.size() == rows) continue;
    return InvalidArgument(
        fmt::format("column '{}' has {} values and column '{}' {}, expected equally many",
                    column.name, column.values.size(), columns.front().name, rows));
  }
  std::vector<std::string> rooms(columns.size());
  for (size_t i = 0; i < rows; ++i) {
    input.Begin();
    for (size_t c = 0; c < columns.size(); ++c) {
      const auto cell = CellOf(columns[c].values[i], &rooms[c]);
      if (!cell.ok()) return OfInstance(i, cell.status().With(columns[c].name));
      input.Cell(columns[c].name, *cell);
    }
    TRY(OfInstance(i, input.End()));
  }
  return Finish(scorer, input, &set);
} catch (const std::bad_alloc&) {
  return ResourceExhausted("there is not enough memory for the request's instances");
}

void AppendScore(const Scorer& scorer, const Scores& scores, size_t i, std::string* to) {
  const auto out = std::back_inserter(*to);
  const int digits = scorer.digits();
  const double* const values = scores.values.data() + i * scores.width;
  if (scores.width == 1) {
    fmt::format_to(out, "{:.{}g}", *values, digits);
    return;
  }
  for (size_t c = 0; c < scores.width; ++c)
    fmt::format_to(out, "{}{:.{}g}", c == 0 ? "[" : ",", values[c], digits);
  *to += ']';
}

void AppendFloats(std::span<const float> values, std::string* to) {
  *to += '[';
  for (size_t i = 0; i < values.size(); ++i)
    fmt::format_to(std::back_inserter(*to), "{}{}", i == 0 ? "" : ",",
                   std::isfinite(values[i]) ? values[i] : 0.0f);
  *to += ']';
}

Result<uint64_t> RowOfWord(const ServedVectors& vectors, std::string_view word) {
  if (const auto row = vectors.index.Find(word); row) return *row;
  const auto near = word.size() <= model::kMaxWordBytes ? vectors.index.Suggest(word)
                                                        : std::optional<std::string>();
  constexpr size_t kShown = 80;
  return NotFound(EscapedUtf8(fmt::format("the model has no word '{}'{}", word.substr(0, kShown),
                                          near ? "; the nearest is '" + *near + "'" : "")));
}

Result<std::vector<model::Neighbour>> NearestTo(const ServedVectors& vectors, std::string_view word,
                                                size_t count) {
  TRY_ASSIGN(const uint64_t row, RowOfWord(vectors, word));
  const std::vector<uint64_t> itself{row};
  return vectors.index.Nearest(vectors.index.unit(row), count, itself);
}

Result<std::vector<float>> VectorOf(const ServedVectors& vectors, std::string_view slice) {
  const uint64_t dim = vectors.index.dim();
  TRY_ASSIGN(const auto elements, ElementsOf(slice, dim + 1));
  if (elements.size() != dim) {
    return InvalidArgument(
        fmt::format("got a vector of {} numbers, expected {} as the model has",
                    elements.size() > dim ? "more" : std::to_string(elements.size()), dim));
  }
  std::vector<float> values;
  std::string room;
  for (const std::string_view element : elements) {
    TRY_ASSIGN(const data::TableCell cell, CellOf(element, &room));
    float value = 0;
    const char* const end = cell.text.data() + cell.text.size();
    const bool read = cell.kind == data::TableCell::Kind::kParsed &&
                      std::from_chars(cell.text.data(), end, value).ec == std::errc();
    if (!read || !std::isfinite(value))
      return InvalidArgument(fmt::format("got {}, expected a finite number of 32 bits", element));
    values.push_back(value);
  }
  return values;
}

Result<size_t> CountOf(const std::string_view* slice, size_t most) {
  constexpr size_t kDefault = 10;
  if (slice == nullptr) return std::min(kDefault, most);
  size_t count = 0;
  const char* const end = slice->data() + slice->size();
  const auto parsed = std::from_chars(slice->data(), end, count);
  if (parsed.ec == std::errc() && parsed.ptr == end && count >= 1 && count <= most) return count;
  constexpr size_t kShown = 40;
  return InvalidArgument(
      fmt::format("top: got {}, expected an integer in [1, {}]", slice->substr(0, kShown), most));
}

}  // namespace shoal::serving
