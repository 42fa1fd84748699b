#include "learn/sparse/quality.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shoal::learn::sparse {

float LogLoss(float margin, float label) {
  const float right = label > 0 ? margin : -margin;
  return std::log1p(std::exp(-std::abs(right))) + std::max(-right, 0.0f);
}

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
  if (positives == 0 || positives == n) quality.auc = std::numeric_limits<double>::quiet_NaN();
  quality.log_loss = loss / n;
  quality.accuracy = static_cast<double>(right) / n;
  return quality;
}

}  // namespace shoal::learn::sparse
