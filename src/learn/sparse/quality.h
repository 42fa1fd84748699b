// How good predictions are: area under the ROC curve, log-loss, accuracy. Pure functions.
#pragma once

#include <cstdint>
#include <span>

namespace shoal::learn::sparse {

struct Scored {
  float margin = 0;  // the logarithm of the predicted odds
  float label = 0;   // 0 or 1
};

struct Quality {
  double auc = 0;       // a positive example has the higher margin, ties count half; NaN if there
                        // are no two classes
  double log_loss = 0;  // mean of −log of the probability given to the true label, nats
  double accuracy = 0;  // margin > 0 says 1
  uint64_t examples = 0;
  uint64_t positives = 0;
};

// Sorts `scored`. O(n log n). Zeros for an empty list.
Quality MeasureQuality(std::span<Scored> scored);

// −log of the probability that `margin` gives to `label`; never infinite for finite margins.
float LogLoss(float margin, float label);

}  // namespace shoal::learn::sparse
