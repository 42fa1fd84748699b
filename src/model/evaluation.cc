#include "model/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <thread>

#include "base/file.h"

namespace shoal::model {
namespace {

constexpr size_t kMaxFile = 256 << 20;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// Calls `each(line, number)` for every line, until one gives an error.
template <typename Each>
Status ForEachLine(std::string_view text, Each each) {
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    TRY(each(text.substr(0, end), number));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return Status::Ok();
}

std::vector<std::string_view> Split(std::string_view line, std::string_view separators) {
  std::vector<std::string_view> fields;
  for (;;) {
    const size_t end = line.find_first_of(separators);
    fields.push_back(Trimmed(line.substr(0, end)));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> SplitBlank(std::string_view line) {
  std::vector<std::string_view> fields;
  for (const std::string_view field : Split(line, " \t\r\v\f")) {
    if (!field.empty()) fields.push_back(field);
  }
  return fields;
}

std::optional<double> NumberOf(std::string_view text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size())
    return {};
  return value;
}

struct Pair {
  std::string_view a, b;
  double score = 0;
};

// nullopt for a heading: two words without a number. The score is the first number after the words
// (SimLex-999 has a part of speech between).
Result<std::optional<Pair>> ParsePair(std::string_view line) {
  const char* separators = line.find('\t') != std::string_view::npos  ? "\t"
                           : line.find(';') != std::string_view::npos ? ";"
                           : line.find(',') != std::string_view::npos ? ","
                                                                      : " ";
  const auto fields = Split(line, separators);
  if (fields.size() < 3) {
    return InvalidArgument(
        fmt::format("got {} fields, expected two words and a score", fields.size()));
  }
  for (size_t i = 2; i < fields.size(); ++i) {
    if (const auto score = NumberOf(fields[i]))
      return std::optional(Pair{fields[0], fields[1], *score});
  }
  return std::optional<Pair>();
}

// Ranks from 1; equal values share the mean of theirs.
std::vector<double> RanksOf(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double rank = (static_cast<double>(begin) + static_cast<double>(end) + 1) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = rank;
    begin = end;
  }
  return ranks;
}

struct Question {
  std::array<uint64_t, 3> given{};
  uint64_t answer = 0;
  size_t section = 0;
};

struct Questions {
  std::vector<AnalogySection> sections;
  std::vector<Question> known;
};

Result<Questions> ParseQuestions(const VectorIndex& index, std::string_view text, uint64_t limit) {
  Questions questions;
  std::map<std::string, size_t> by_name;
  size_t section = 0;
  const auto enter = [&](std::string_view name) {
    const auto [entry, added] = by_name.emplace(name, questions.sections.size());
    if (added) questions.sections.push_back({std::string(name), 0, 0, 0});
    section = entry->second;
  };
  TRY(ForEachLine(text, [&](std::string_view line, size_t number) -> Status {
    if (line.starts_with(':')) {
      enter(Trimmed(line.substr(1)));
      return Status::Ok();
    }
    const auto words = SplitBlank(line);
    if (words.empty()) return Status::Ok();
    if (words.size() != 4) {
      return InvalidArgument(
          fmt::format("line {}: got {} words, expected 4 (or ': section')", number, words.size()));
    }
    if (questions.sections.empty()) enter("none");
    ++questions.sections[section].asked;
    std::array<uint64_t, 4> rows{};
    for (size_t i = 0; i < 4; ++i) rows[i] = index.FindIgnoringCase(words[i]).value_or(limit);
    if (*std::max_element(rows.begin(), rows.end()) < limit) {
      questions.known.push_back({{rows[0], rows[1], rows[2]}, rows[3], section});
    }
    return Status::Ok();
  }));
  return questions;
}

// The answers to the questions [begin, end).
void AnswerSome(const VectorIndex& index, std::span<const Question> questions, uint64_t limit,
                std::span<uint64_t> answers) {
  std::vector<float> queries(questions.size() * index.dim());
  std::vector<uint64_t> excluded;
  for (size_t q = 0; q < questions.size(); ++q) {
    const auto& [a, b, c] = questions[q].given;
    float* query = queries.data() + q * index.dim();
    for (size_t k = 0; k < index.dim(); ++k) {
      query[k] = index.unit(b)[k] - index.unit(a)[k] + index.unit(c)[k];
    }
    excluded.insert(excluded.end(), {a, b, c});
  }
  index.BestRows(queries, excluded, limit, answers);
}

std::vector<uint64_t> Answer(const VectorIndex& index, std::span<const Question> questions,
                             uint64_t limit) {
  std::vector<uint64_t> answers(questions.size());
  const size_t threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 16);
  const size_t share = (questions.size() + threads - 1) / threads;
  std::vector<std::thread> running;
  for (size_t begin = 0; begin < questions.size(); begin += share) {
    const size_t count = std::min(share, questions.size() - begin);
    running.emplace_back([=, &index, &answers] {
      AnswerSome(index, questions.subspan(begin, count), limit,
                 std::span(answers).subspan(begin, count));
    });
  }
  for (std::thread& thread : running) thread.join();
  return answers;
}

void AddTo(AnalogySection* total, const AnalogySection& part) {
  total->right += part.right;
  total->answered += part.answered;
  total->asked += part.asked;
}

}  // namespace

double Spearman(std::span<const double> a, std::span<const double> b) {
  SHOAL_CHECK(a.size() == b.size());
  if (a.size() < 2) return kNaN;
  const std::vector<double> x = RanksOf(a);
  const std::vector<double> y = RanksOf(b);
  const double mean = (static_cast<double>(a.size()) + 1) / 2;
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
    xy += (x[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : kNaN;
}

Result<PairSimilarity> EvaluatePairs(const VectorIndex& index, const std::filesystem::path& file) {
  TRY_ASSIGN(const std::string text, ReadFile(file, kMaxFile));
  std::vector<double> people, ours;
  PairSimilarity result;
  const Status parsed = ForEachLine(text, [&](std::string_view line, size_t number) -> Status {
    if (line.starts_with('#') || Trimmed(line).empty()) return Status::Ok();
    auto pair = ParsePair(line);
    const std::string place = fmt::format("line {}", number);
    if (!pair.ok()) return pair.status().With(place);
    if (!pair->has_value()) {
      const bool heading = people.empty() && result.skipped == 0;
      return heading ? Status::Ok()
                     : InvalidArgument(place + ": there is no score behind the words");
    }
    const auto a = index.FindIgnoringCase((*pair)->a);
    const auto b = index.FindIgnoringCase((*pair)->b);
    if (!a || !b) {
      ++result.skipped;
      return Status::Ok();
    }
    const auto x = index.unit(*a);
    people.push_back((*pair)->score);
    ours.push_back(std::inner_product(x.begin(), x.end(), index.unit(*b).begin(), 0.0));
    return Status::Ok();
  });
  if (!parsed.ok()) return parsed.With(file.string());
  result.pairs = people.size();
  result.spearman = Spearman(people, ours);
  return result;
}

Result<AnalogyResults> EvaluateAnalogies(const VectorIndex& index,
                                         const std::filesystem::path& file,
                                         uint64_t restrict_rows) {
  TRY_ASSIGN(const std::string text, ReadFile(file, kMaxFile));
  const uint64_t limit = restrict_rows == 0 ? index.rows() : std::min(restrict_rows, index.rows());
  auto questions = ParseQuestions(index, text, limit);
  if (!questions.ok()) return questions.status().With(file.string());
  const std::vector<uint64_t> answers = Answer(index, questions->known, limit);
  for (size_t q = 0; q < answers.size(); ++q) {
    const Question& question = questions->known[q];
    AnalogySection& section = questions->sections[question.section];
    ++section.answered;
    section.right += answers[q] == question.answer ? 1 : 0;
  }
  AnalogyResults result;
  result.total.name = "total";
  result.semantic.name = "semantic";
  result.syntactic.name = "syntactic";
  result.sections = std::move(questions->sections);
  for (const AnalogySection& section : result.sections) {
    AddTo(&result.total, section);
    AddTo(section.name.starts_with("gram") ? &result.syntactic : &result.semantic, section);
  }
  return result;
}

}  // namespace shoal::model
