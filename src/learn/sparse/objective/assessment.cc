#include "learn/sparse/objective/assessment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

namespace shoal::learn::sparse {
namespace {

constexpr size_t kBinExamples = 20;  // at least, so that a mean says something

// Sorts by `prediction` and sums up: one bin for each part of about the same size, never apart
// within equal predictions. `observe` gives what came true of an example.
template <typename Example, typename Prediction, typename Observe>
std::vector<PredictionBin> MakeBins(std::span<Example> scored, const Prediction& prediction,
                                    const Observe& observe) {
  std::sort(scored.begin(), scored.end(),
            [&](const Example& a, const Example& b) { return prediction(a) < prediction(b); });
  const size_t wanted = std::clamp<size_t>(scored.size() / kBinExamples, 1, Assessment::kMostBins);
  std::vector<PredictionBin> bins;
  size_t at = 0;
  for (size_t bin = 0; bin < wanted && at < scored.size(); ++bin) {
    const size_t end = scored.size() * (bin + 1) / wanted;
    if (end <= at) continue;
    PredictionBin sums;
    while (at < scored.size() &&
           (at < end || prediction(scored[at]) == prediction(scored[at - 1]))) {
      sums.predicted += prediction(scored[at]);
      sums.observed += observe(scored[at]);
      ++sums.examples;
      ++at;
    }
    sums.predicted /= static_cast<double>(sums.examples);
    sums.observed /= static_cast<double>(sums.examples);
    bins.push_back(sums);
  }
  return bins;
}

std::vector<double> Residuals(const Target& target, std::span<const Scored> scored) {
  std::vector<double> all;
  all.reserve(scored.size());
  for (const Scored& one : scored) {
    const double label =
        target.scale.mean + target.scale.deviation * static_cast<double>(one.label);
    all.push_back(label - target.ValueOf(one.margin));
  }
  std::sort(all.begin(), all.end());
  std::vector<double> deciles;
  for (size_t i = 0; i < Assessment::kResiduals; ++i)
    deciles.push_back(all[(all.size() - 1) * i / (Assessment::kResiduals - 1)]);
  return deciles;
}

void CountClasses(std::span<const ScoredClass> scored, size_t classes, Assessment* assessment) {
  std::vector<uint64_t> there(classes);
  for (const ScoredClass& one : scored) {
    if (one.label < classes) ++there[one.label];
  }
  std::vector<uint32_t> order(classes);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return there[a] > there[b]; });
  assessment->others = classes > Assessment::kMostClasses;
  order.resize(std::min(classes, Assessment::kMostClasses));
  std::sort(order.begin(), order.end());
  assessment->classes = order;
  const size_t sides = assessment->sides();
  std::vector<size_t> place(classes, order.size());  // that of all others
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  assessment->counts.assign(sides * sides, 0);
  for (const ScoredClass& one : scored) {
    if (one.label >= classes || one.predicted >= classes) continue;
    ++assessment->counts[place[one.label] * sides + place[one.predicted]];
  }
}

void AssessNumbers(const Target& target, std::span<Scored> scored, Assessment* assessment) {
  const bool quantile = target.loss.kind == LossKind::kQuantile;
  assessment->bins = MakeBins(
      scored, [&](const Scored& one) { return target.ValueOf(one.margin); },
      [&](const Scored& one) {
        if (quantile) return one.margin >= one.label ? 1.0 : 0.0;
        return target.scale.mean + target.scale.deviation * static_cast<double>(one.label);
      });
  assessment->residuals = Residuals(target, scored);
}

Status Malformed(std::string_view what) {
  return DataLoss(fmt::format("model.json: assessment: {}", what));
}

// The list in a field, of at most `most` entries; null: there is none.
Result<const json::array*> ListIn(const json::object& object, std::string_view field, size_t most) {
  const json::value* const found = object.if_contains(field);
  if (found == nullptr) return static_cast<const json::array*>(nullptr);
  if (!found->is_array() || found->as_array().size() > most)
    return Malformed(fmt::format("{} is no list of at most {} entries", field, most));
  return &found->as_array();
}

Result<double> NumberIn(const json::value& value, std::string_view field) {
  const double number = value.is_number() ? value.to_number<double>() : NAN;
  if (!std::isfinite(number)) return Malformed(fmt::format("{} has no finite number", field));
  return number;
}

Result<uint64_t> CountIn(const json::value& value, std::string_view field) {
  TRY_ASSIGN(const double number, NumberIn(value, field));
  if (number < 0 || number > 0x1p53 || number != std::floor(number))
    return Malformed(fmt::format("{} has no count", field));
  return static_cast<uint64_t>(number);
}

Status ReadBins(const json::object& object, Assessment* assessment) {
  TRY_ASSIGN(const json::array* const bins, ListIn(object, "bins", Assessment::kMostBins));
  for (size_t i = 0; bins != nullptr && i < bins->size(); ++i) {
    const json::value& bin = (*bins)[i];
    if (!bin.is_array() || bin.as_array().size() != 3) return Malformed("a bin has not 3 numbers");
    PredictionBin read;
    TRY_ASSIGN(read.examples, CountIn(bin.as_array()[0], "bins"));
    TRY_ASSIGN(read.predicted, NumberIn(bin.as_array()[1], "bins"));
    TRY_ASSIGN(read.observed, NumberIn(bin.as_array()[2], "bins"));
    assessment->bins.push_back(read);
  }
  return Status::Ok();
}

Status ReadConfusion(const json::object& object, Assessment* assessment) {
  TRY_ASSIGN(const json::array* const classes, ListIn(object, "classes", Assessment::kMostClasses));
  assessment->others = GetBoolOr(object, "others", false);
  for (size_t i = 0; classes != nullptr && i < classes->size(); ++i) {
    TRY_ASSIGN(const uint64_t number, CountIn((*classes)[i], "classes"));
    if (number > UINT32_MAX) return Malformed("classes has a number above 2^32");
    assessment->classes.push_back(static_cast<uint32_t>(number));
  }
  const size_t sides = assessment->sides();
  TRY_ASSIGN(const json::array* const rows, ListIn(object, "confusion", sides));
  if (rows == nullptr ? !assessment->classes.empty() : rows->size() != sides)
    return Malformed("confusion has not a row for each class");
  for (size_t i = 0; rows != nullptr && i < sides; ++i) {
    const json::value& row = (*rows)[i];
    if (!row.is_array() || row.as_array().size() != sides)
      return Malformed("confusion has not a column for each class");
    for (const json::value& cell : row.as_array()) {
      TRY_ASSIGN(const uint64_t count, CountIn(cell, "confusion"));
      assessment->counts.push_back(count);
    }
  }
  return Status::Ok();
}

}  // namespace

Assessment AssessPredictions(const Target& target, std::span<Scored> scored) {
  Assessment assessment;
  assessment.examples = scored.size();
  if (scored.empty()) return assessment;
  if (target.loss.predicts_numbers()) {
    AssessNumbers(target, scored, &assessment);
    return assessment;
  }
  std::vector<ScoredClass> classes;
  classes.reserve(scored.size());
  for (const Scored& one : scored)
    classes.push_back({.label = one.label > 0 ? 1u : 0u, .predicted = one.margin > 0 ? 1u : 0u});
  CountClasses(classes, 2, &assessment);
  if (target.loss.kind == LossKind::kHinge) return assessment;
  assessment.bins = MakeBins(
      scored, [](const Scored& one) { return static_cast<double>(Probability(one.margin)); },
      [](const Scored& one) { return one.label > 0 ? 1.0 : 0.0; });
  return assessment;
}

Assessment AssessPredictions(std::span<ScoredClass> scored, size_t classes) {
  Assessment assessment;
  assessment.examples = scored.size();
  if (scored.empty()) return assessment;
  CountClasses(scored, classes, &assessment);
  assessment.bins = MakeBins(
      scored, [](const ScoredClass& one) { return static_cast<double>(one.confidence); },
      [](const ScoredClass& one) { return one.label == one.predicted ? 1.0 : 0.0; });
  return assessment;
}

json::object ToJson(const Assessment& assessment, std::string_view of) {
  json::object object{{"of", of}, {"examples", assessment.examples}};
  json::array bins;
  for (const PredictionBin& bin : assessment.bins)
    bins.push_back(json::array{bin.examples, bin.predicted, bin.observed});
  if (!bins.empty()) object["bins"] = std::move(bins);
  if (!assessment.residuals.empty())
    object["residuals"] = json::array(assessment.residuals.begin(), assessment.residuals.end());
  if (assessment.classes.empty()) return object;
  object["classes"] = json::array(assessment.classes.begin(), assessment.classes.end());
  object["others"] = assessment.others;
  json::array rows;
  const auto sides = static_cast<std::ptrdiff_t>(assessment.sides());
  for (auto row = assessment.counts.begin(); row != assessment.counts.end(); row += sides)
    rows.push_back(json::array(row, row + sides));
  object["confusion"] = std::move(rows);
  return object;
}

Result<std::optional<SavedAssessment>> AssessmentFromJson(const json::object& metadata) {
  const json::value* const found = metadata.if_contains("assessment");
  if (found == nullptr) return std::optional<SavedAssessment>();
  if (!found->is_object()) return Malformed("it is no object");
  const json::object& object = found->as_object();
  SavedAssessment saved;
  saved.of = GetStringOr(object, "of", "");
  if (saved.of != "test" && saved.of != "validation")
    return Malformed("`of` is neither test nor validation");
  const json::value* const examples = object.if_contains("examples");
  if (examples == nullptr) return Malformed("examples is missing");
  TRY_ASSIGN(saved.assessment.examples, CountIn(*examples, "examples"));
  TRY(ReadBins(object, &saved.assessment));
  TRY(ReadConfusion(object, &saved.assessment));
  TRY_ASSIGN(const json::array* const residuals,
             ListIn(object, "residuals", Assessment::kResiduals));
  if (residuals != nullptr && residuals->size() != Assessment::kResiduals)
    return Malformed(fmt::format("residuals has not {} numbers", Assessment::kResiduals));
  for (size_t i = 0; residuals != nullptr && i < residuals->size(); ++i) {
    TRY_ASSIGN(const double residual, NumberIn((*residuals)[i], "residuals"));
    saved.assessment.residuals.push_back(residual);
  }
  return std::optional<SavedAssessment>(std::move(saved));
}

}  // namespace shoal::learn::sparse
