#include "model/vector_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "model/dot_products.h"

namespace shoal::model {
namespace {

constexpr size_t kScoredAtOnce = 4096;
constexpr size_t kQueryBlock = 256;  // queries whose scores with one panel stay in L2
constexpr uint64_t kPad = 16;

// Maps capital letters of the Latin, Greek and Cyrillic blocks below U+0800 to small ones; other
// characters are unchanged.
uint32_t SmallLetter(uint32_t c) {
  const auto in = [c](uint32_t low, uint32_t high) { return c >= low && c <= high; };
  if (in('A', 'Z') || (in(0xc0, 0xde) && c != 0xd7) || in(0x391, 0x3ab) || in(0x410, 0x42f)) {
    return c + 32;
  }
  if (c == 0x178) return 0xff;
  if (c == 0x386) return 0x3ac;
  if (in(0x388, 0x38a)) return c + 37;
  if (in(0x139, 0x148) || in(0x179, 0x17e)) return c + c % 2;  // capitals are odd here
  if ((in(0x100, 0x177) && c != 0x130 && c != 0x138) || in(0x460, 0x481) || in(0x48a, 0x4bf) ||
      in(0x4d0, 0x52f)) {
    return c + 1 - c % 2;  // and even here
  }
  return in(0x400, 0x40f) ? c + 80 : c;
}

// Folds case. Bytes that are not UTF-8 are unchanged.
std::string Folded(std::string_view word) {
  std::string folded(word);
  for (size_t i = 0; i < folded.size(); ++i) {
    const auto lead = static_cast<uint8_t>(folded[i]);
    if (lead < 0x80) {
      folded[i] = static_cast<char>(SmallLetter(lead));
    } else if (lead >= 0xc2 && lead < 0xe0 && i + 1 < folded.size()) {
      const auto next = static_cast<uint8_t>(folded[i + 1]);
      if ((next & 0xc0) != 0x80) continue;
      const uint32_t small = SmallLetter((lead & 0x1fu) << 6 | (next & 0x3fu));
      folded[i] = static_cast<char>(0xc0 | small >> 6);
      folded[++i] = static_cast<char>(0x80 | (small & 0x3f));
    }
  }
  return folded;
}

// Replaces non-finite values by 0 and scales to length 1. False if there were any.
bool MakeUnit(std::span<float> row) {
  bool finite = true;
  double squares = 0;
  for (float& value : row) {
    if (!std::isfinite(value)) {
      value = 0;
      finite = false;
    }
    squares += static_cast<double>(value) * value;
  }
  const double length = std::sqrt(squares);
  if (length > 0) {
    for (float& value : row) value = static_cast<float>(value / length);
  }
  return finite;
}

// Optimal string alignment distance (insert, delete, replace, swap neighbours), or `limit` + 1 if
// it is larger.
size_t EditDistance(std::string_view a, std::string_view b, size_t limit) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > limit) return limit + 1;
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    size_t best = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] =
          std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1] ? 1u : 0u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
      best = std::min(best, now[j]);
    }
    if (best > limit) return limit + 1;
    std::swap(before, last);
    std::swap(last, now);
  }
  return std::min(last[b.size()], limit + 1);
}

Status Unknown(const VectorIndex& index, std::string_view word) {
  const auto like = index.Suggest(word);
  return NotFound(
      like.has_value()
          ? fmt::format("'{}' is not in the vocabulary; did you mean '{}'?", word, *like)
          : fmt::format("'{}' is not in the vocabulary of {} words", word, index.rows()));
}

Result<uint64_t> FindOrSuggest(const VectorIndex& index, std::string_view word) {
  const auto row = index.Find(word);
  if (row.has_value()) return *row;
  return Unknown(index, word);
}

void AddTo(std::span<float> sum, std::span<const float> row, float factor) {
  for (size_t k = 0; k < sum.size(); ++k) sum[k] += factor * row[k];
}

// The best row of each query so far.
struct Best {
  float score = -std::numeric_limits<float>::infinity();
  uint64_t row = 0;
};

// Updates the best rows with the scores of rows [first, first + rows).
void Improve(const float* scores, uint64_t first, size_t rows, std::span<const uint64_t> excluded,
             Best* best) {
  float top = -std::numeric_limits<float>::infinity();
  for (size_t r = 0; r < rows; ++r) top = std::max(top, scores[r]);
  if (!(top > best->score)) return;
  for (size_t r = 0; r < rows; ++r) {
    if (!(scores[r] > best->score)) continue;
    if (std::find(excluded.begin(), excluded.end(), first + r) != excluded.end()) continue;
    *best = {scores[r], first + r};
  }
}

}  // namespace

VectorIndex::VectorIndex(Vectors vectors)
    : words_(std::move(vectors.words)),
      dim_(vectors.dim),
      stride_((vectors.dim + kPad - 1) / kPad * kPad),
      units_(words_.size() * stride_) {
  exact_.reserve(words_.size());
  folded_.reserve(words_.size());
  for (uint64_t row = 0; row < words_.size(); ++row) {
    float* unit = units_.data() + row * stride_;
    std::copy_n(vectors.values.data() + row * dim_, dim_, unit);
    if (!MakeUnit({unit, static_cast<size_t>(dim_)})) ++nonfinite_rows_;
    exact_.emplace(words_[row], row);
    folded_.emplace(Folded(words_[row]), row);
  }
}

std::optional<uint64_t> VectorIndex::Find(std::string_view word) const {
  const auto found = exact_.find(std::string(word));
  return found != exact_.end() ? std::optional(found->second) : FindIgnoringCase(word);
}

std::optional<uint64_t> VectorIndex::FindIgnoringCase(std::string_view word) const {
  const auto found = folded_.find(Folded(word));
  return found != folded_.end() ? std::optional(found->second) : std::nullopt;
}

std::optional<std::string> VectorIndex::Suggest(std::string_view word) const {
  const std::string wanted = Folded(word);
  size_t limit = std::max<size_t>(1, wanted.size() / 3);
  std::optional<std::string> like;
  for (const std::string& candidate : words_) {
    const size_t distance = EditDistance(wanted, Folded(candidate), limit);
    if (distance > limit) continue;
    like = candidate;
    if (distance == 0) break;
    limit = distance - 1;  // later rows are less frequent: they must be nearer
  }
  return like;
}

std::vector<Neighbour> VectorIndex::Nearest(std::span<const float> query, size_t k,
                                            std::span<const uint64_t> excluded) const {
  std::vector<float> unit(stride_, 0.0f);
  std::copy(query.begin(), query.end(), unit.begin());
  MakeUnit(unit);
  std::vector<Neighbour> all;
  all.reserve(rows());
  std::vector<float> scores(kScoredAtOnce);
  for (uint64_t first = 0; first < rows(); first += kScoredAtOnce) {
    const size_t count = std::min<uint64_t>(kScoredAtOnce, rows() - first);
    ScoreRows(unit.data(), units_.data() + first * stride_, count, stride_, scores.data());
    for (size_t i = 0; i < count; ++i) {
      if (std::find(excluded.begin(), excluded.end(), first + i) == excluded.end()) {
        all.push_back({first + i, std::clamp(scores[i], -1.0f, 1.0f)});
      }
    }
  }
  const auto nearer = [](const Neighbour& a, const Neighbour& b) {
    return a.similarity != b.similarity ? a.similarity > b.similarity : a.row < b.row;
  };
  k = std::min(k, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<ptrdiff_t>(k), all.end(), nearer);
  all.resize(k);
  return all;
}

void VectorIndex::BestRows(std::span<const float> queries, std::span<const uint64_t> excluded,
                           uint64_t limit, std::span<uint64_t> best) const {
  limit = std::min(limit, rows());
  std::vector<Best> found(best.size());
  std::vector<float> panel(kPanelRows * dim_);
  std::vector<float> scores(kQueryBlock * kPanelRows);
  for (uint64_t first = 0; first < limit; first += kPanelRows) {
    const size_t count = std::min<uint64_t>(kPanelRows, limit - first);
    PackPanel(units_.data() + first * stride_, count, stride_, dim_, panel.data());
    for (size_t q = 0; q < best.size(); q += kQueryBlock) {
      const size_t some = std::min(kQueryBlock, best.size() - q);
      ScorePanel(queries.data() + q * dim_, some, dim_, panel.data(), dim_, scores.data());
      for (size_t i = 0; i < some; ++i) {
        Improve(scores.data() + i * kPanelRows, first, count, excluded.subspan(3 * (q + i), 3),
                &found[q + i]);
      }
    }
  }
  for (size_t q = 0; q < best.size(); ++q) best[q] = found[q].row;
}

Result<std::vector<Neighbour>> NearestWords(const VectorIndex& index,
                                            std::span<const std::string> words, size_t k) {
  if (words.empty()) return InvalidArgument("no word was named");
  std::vector<float> mean(index.dim(), 0.0f);
  std::vector<uint64_t> rows;
  for (const std::string& word : words) {
    TRY_ASSIGN(const uint64_t row, FindOrSuggest(index, word));
    rows.push_back(row);
    AddTo(mean, index.unit(row), 1);
  }
  return index.Nearest(mean, k, rows);
}

Result<std::vector<Neighbour>> Analogy(const VectorIndex& index, std::string_view a,
                                       std::string_view b, std::string_view c, size_t k) {
  TRY_ASSIGN(const uint64_t from, FindOrSuggest(index, a));
  TRY_ASSIGN(const uint64_t to, FindOrSuggest(index, b));
  TRY_ASSIGN(const uint64_t also, FindOrSuggest(index, c));
  std::vector<float> target(index.dim(), 0.0f);
  AddTo(target, index.unit(to), 1);
  AddTo(target, index.unit(from), -1);
  AddTo(target, index.unit(also), 1);
  const uint64_t excluded[] = {from, to, also};
  return index.Nearest(target, k, excluded);
}

}  // namespace shoal::model
