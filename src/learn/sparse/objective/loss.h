// What a training minimizes: the loss of an example as a function of its margin and label, and its
// derivative, which is the error that a step works with.
//
//   loss      label t             error ∂/∂m                   reported as
//   logistic  0 or 1              σ(m) − t                     log-loss
//   hinge     0 or 1 (s = ±1)     −s where s·m < 1             max(0, 1 − s·m)
//   squared   (y − mean)/dev      m − t                        (m − t)²
//   quantile  the same            1 − τ above t, −τ below      pinball loss (Koenker, Bassett 1978)
//   poisson   y / mean            exp(m) − t                   deviance 2(t·log(t/exp(m)) − t +
//   exp(m)) softmax   number of a class   of class c: p_c − [t = c]    log-loss
//
// Labels that are numbers are put on a scale of their own first (label_scale.h), so that rates suit
// every unit. Pure functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace shoal::learn::sparse {

enum class LossKind : uint8_t {
  kLogistic = 0,
  kHinge = 1,
  kSquared = 2,
  kQuantile = 3,
  kPoisson = 4,
  kSoftmax = 5
};

struct Loss {
  LossKind kind = LossKind::kLogistic;
  float quantile = 0.5f;  // τ

  // The label is a number, not a class.
  bool predicts_numbers() const {
    return kind == LossKind::kSquared || kind == LossKind::kQuantile || kind == LossKind::kPoisson;
  }
  bool operator==(const Loss&) const = default;
};

// "logistic", … as the parameter `loss` names them, but for "auto".
std::string_view NameOf(LossKind kind);
Result<LossKind> LossKindOf(std::string_view name);

// 1 / (1 + exp(−margin)).
float Probability(float margin);

// Beyond this margin exp grows no more, so that one wrong step of poisson stays finite.
inline constexpr float kLargestExponent = 30;

// All but the logistic error.
float OtherError(const Loss& loss, float margin, float label);

// The derivative of the loss by the margin. Of softmax: that of one class, whose margin is taken
// less the logarithm of the others' summed exponentials, with label 1 for the true class.
inline float ErrorOf(const Loss& loss, float margin, float label) {
  if (loss.kind == LossKind::kLogistic) return Probability(margin) - label;
  return OtherError(loss, margin, label);
}

// The loss as it is reported. Of softmax: `margin` is that of the true class, as above.
float LossOf(const Loss& loss, float margin, float label);

// −log of the probability that `margin` gives to `label`; never infinite for finite margins.
float LogLoss(float margin, float label);

// Of the loss between two margins: the difference of its derivatives by that of the margins.
float MeanCurvature(const Loss& loss, float from, float to, float label);

}  // namespace shoal::learn::sparse
