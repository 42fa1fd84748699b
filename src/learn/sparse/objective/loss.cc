#include "learn/sparse/objective/loss.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace shoal::learn::sparse {
namespace {

constexpr std::array<std::string_view, 6> kLossNames = {"logistic", "hinge",   "squared",
                                                        "quantile", "poisson", "softmax"};

// Beyond so many times the label and the mean count (1) the error of a prediction grows no more.
// Otherwise the square of one error, such as e¹⁴ of a value that lies far out in its column, makes
// all further steps too short to be of use (ADR 391).
constexpr float kLargestTimes = 100;

float PoissonRate(float margin) { return std::exp(std::min(margin, kLargestExponent)); }

}  // namespace

std::string_view NameOf(LossKind kind) { return kLossNames[static_cast<size_t>(kind)]; }

Result<LossKind> LossKindOf(std::string_view name) {
  for (size_t i = 0; i < kLossNames.size(); ++i) {
    if (kLossNames[i] == name) return static_cast<LossKind>(i);
  }
  return InvalidArgument(
      fmt::format("loss: got {}, expected one of {}", name, fmt::join(kLossNames, ", ")));
}

float Probability(float margin) { return 1 / (1 + std::exp(-margin)); }

float OtherError(const Loss& loss, float margin, float label) {
  switch (loss.kind) {
    case LossKind::kLogistic:
    case LossKind::kSoftmax:
      return Probability(margin) - label;
    case LossKind::kHinge: {
      const float sign = label > 0 ? 1.0f : -1.0f;
      return sign * margin < 1 ? -sign : 0;
    }
    case LossKind::kSquared:
      return margin - label;
    case LossKind::kQuantile:
      return margin >= label ? 1 - loss.quantile : -loss.quantile;
    case LossKind::kPoisson:
      return std::min(PoissonRate(margin), kLargestTimes * (label + 1)) - label;
  }
  return 0;
}

float LossOf(const Loss& loss, float margin, float label) {
  switch (loss.kind) {
    case LossKind::kLogistic:
      return LogLoss(margin, label);
    case LossKind::kSoftmax:
      return LogLoss(margin, 1);
    case LossKind::kHinge:
      return std::max(0.0f, 1 - (label > 0 ? margin : -margin));
    case LossKind::kSquared:
      return (margin - label) * (margin - label);
    case LossKind::kQuantile: {
      const float above = margin - label;
      return above >= 0 ? (1 - loss.quantile) * above : -loss.quantile * above;
    }
    case LossKind::kPoisson: {
      const float entropy = label > 0 ? label * (std::log(label) - margin) : 0;
      return 2 * std::max(0.0f, entropy - label + PoissonRate(margin));
    }
  }
  return 0;
}

float LogLoss(float margin, float label) {
  const float right = label > 0 ? margin : -margin;
  return std::log1p(std::exp(-std::abs(right))) + std::max(-right, 0.0f);
}

float MeanCurvature(const Loss& loss, float from, float to, float label) {
  constexpr float kNear = 1e-3f;
  if (std::abs(to - from) >= kNear)
    return (ErrorOf(loss, to, label) - ErrorOf(loss, from, label)) / (to - from);
  switch (loss.kind) {
    case LossKind::kLogistic:
    case LossKind::kSoftmax: {
      const float p = Probability(from);
      return p * (1 - p);
    }
    case LossKind::kSquared:
      return 1;
    case LossKind::kPoisson:
      return PoissonRate(from);
    case LossKind::kHinge:
    case LossKind::kQuantile:
      return 0;
  }
  return 0;
}

}  // namespace shoal::learn::sparse
