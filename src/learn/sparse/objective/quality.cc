#include "learn/sparse/objective/quality.h"

#include <algorithm>
#include <cmath>

#include "learn/sparse/softmax_learner.h"

namespace shoal::learn::sparse {

Quality MeasureQuality(std::span<Scored> scored) {
  Quality quality;
  quality.examples = scored.size();
  if (scored.empty()) return quality;
  std::sort(scored.begin(), scored.end(),
            [](const Scored& a, const Scored& b) { return a.margin < b.margin; });
  double rank_sum = 0;  // of positives; equal margins share their mean rank
  double loss = 0;
  uint64_t right = 0;
  for (size_t i = 0; i < scored.size();) {
    size_t end = i;
    uint64_t positives = 0;
    for (; end < scored.size() && scored[end].margin == scored[i].margin; ++end) {
      positives += scored[end].label > 0;
      loss += static_cast<double>(LogLoss(scored[end].margin, scored[end].label));
      right += (scored[end].margin > 0) == (scored[end].label > 0);
    }
    if (end == i) ++end;  // NaN equals nothing
    rank_sum += static_cast<double>(positives) * (static_cast<double>(i + end) + 1) / 2;
    quality.positives += positives;
    i = end;
  }
  const auto n = static_cast<double>(scored.size());
  const auto positives = static_cast<double>(quality.positives);
  quality.auc = (rank_sum - positives * (positives + 1) / 2) / (positives * (n - positives));
  if (positives == 0 || positives == n) quality.auc = kUnmeasured;
  quality.log_loss = quality.loss = loss / n;
  quality.accuracy = static_cast<double>(right) / n;
  return quality;
}

namespace {

Quality MeasureNumbers(const Target& target, std::span<const Scored> scored) {
  Quality quality;
  double loss = 0, squares = 0, distances = 0, sum = 0, label_squares = 0;
  uint64_t covered = 0;
  for (const Scored& one : scored) {
    loss += static_cast<double>(LossOf(target.loss, one.margin, one.label));
    // In the labels' unit, less their mean.
    const bool counts = target.loss.kind == LossKind::kPoisson;
    const double predicted = counts ? target.ValueOf(one.margin) / target.scale.deviation
                                    : static_cast<double>(one.margin);
    const double label = static_cast<double>(one.label);
    const double off = predicted - label;
    squares += off * off;
    distances += std::abs(off);
    sum += label;
    label_squares += label * label;
    covered += off >= 0;
  }
  const auto n = static_cast<double>(scored.size());
  const double unit = target.scale.deviation;
  quality.loss = loss / n * target.loss_unit();
  quality.mae = distances / n * unit;
  const double spread = label_squares - sum * sum / n;
  switch (target.loss.kind) {
    case LossKind::kQuantile:
      quality.pinball = quality.loss;
      quality.coverage = static_cast<double>(covered) / n;
      break;
    case LossKind::kPoisson:
      quality.deviance = quality.loss;
      quality.rmse = std::sqrt(squares / n) * unit;
      break;
    default:
      quality.rmse = std::sqrt(squares / n) * unit;
      if (spread > 0) quality.r2 = 1 - squares / spread;
  }
  return quality;
}

}  // namespace

Quality MeasureQuality(const Target& target, std::span<Scored> scored) {
  if (target.loss.kind == LossKind::kLogistic) return MeasureQuality(scored);
  Quality quality;
  if (!scored.empty() && target.loss.predicts_numbers()) quality = MeasureNumbers(target, scored);
  if (!scored.empty() && target.loss.kind == LossKind::kHinge) {
    quality = MeasureQuality(scored);
    double loss = 0;
    for (const Scored& one : scored)
      loss += static_cast<double>(LossOf(target.loss, one.margin, one.label));
    quality.loss = quality.hinge = loss / static_cast<double>(scored.size());
    quality.log_loss = kUnmeasured;
  }
  quality.kind = target.loss.kind;
  quality.examples = scored.size();
  return quality;
}

ScoredClass ScoreClass(std::span<const float> margins, uint32_t label) {
  ScoredClass scored;
  scored.label = label;
  scored.predicted =
      static_cast<uint32_t>(std::max_element(margins.begin(), margins.end()) - margins.begin());
  const float all = LogSumExp(margins.data(), margins.size());
  scored.confidence = std::exp(margins[scored.predicted] - all);
  if (label < margins.size()) scored.log_probability = margins[label] - all;
  return scored;
}

Quality MeasureQuality(std::span<const ScoredClass> scored, size_t classes) {
  Quality quality;
  quality.kind = LossKind::kSoftmax;
  quality.examples = scored.size();
  if (scored.empty()) return quality;
  std::vector<uint64_t> right(classes), there(classes), predicted(classes);
  double loss = 0;
  uint64_t all_right = 0;
  for (const ScoredClass& one : scored) {
    loss -= static_cast<double>(one.log_probability);
    ++there[one.label];
    ++predicted[one.predicted];
    right[one.label] += one.label == one.predicted;
    all_right += one.label == one.predicted;
  }
  double f1 = 0;
  size_t known = 0;
  for (size_t c = 0; c < classes; ++c) {
    if (there[c] + predicted[c] == 0) continue;
    ++known;
    f1 += 2 * static_cast<double>(right[c]) / static_cast<double>(there[c] + predicted[c]);
  }
  const auto n = static_cast<double>(scored.size());
  quality.loss = quality.log_loss = loss / n;
  quality.accuracy = static_cast<double>(all_right) / n;
  quality.macro_f1 = f1 / static_cast<double>(known);
  return quality;
}

std::vector<Metric> MetricsOf(const Quality& quality) {
  std::vector<Metric> metrics = {{"auc", "AUC", quality.auc},
                                 {"r2", "R²", quality.r2},
                                 {"rmse", "RMSE", quality.rmse},
                                 {"mae", "MAE", quality.mae},
                                 {"pinball", "pinball loss", quality.pinball},
                                 {"coverage", "coverage", quality.coverage},
                                 {"deviance", "Poisson deviance", quality.deviance},
                                 {"hinge", "hinge loss", quality.hinge},
                                 {"log_loss", "log-loss", quality.log_loss},
                                 {"accuracy", "accuracy", quality.accuracy},
                                 {"macro_f1", "macro F1", quality.macro_f1}};
  std::erase_if(metrics, [](const Metric& metric) { return std::isnan(metric.value); });
  return metrics;
}

json::object ToJson(const Quality& quality) {
  json::object object;
  for (const Metric& metric : MetricsOf(quality)) object[metric.key] = metric.value;
  object["examples"] = quality.examples;
  if (quality.kind == LossKind::kLogistic || quality.kind == LossKind::kHinge)
    object["positives"] = quality.positives;
  return object;
}

}  // namespace shoal::learn::sparse
