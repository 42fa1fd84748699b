// Registry entry of sparse logistic regression (learn/algorithm.h).
#pragma once

#include "learn/algorithm.h"

namespace shoal::learn::logistic {

const Algorithm& GetAlgorithm();
// The same under the name `linear`, for every loss.
const Algorithm& GetLinearAlgorithm();

}  // namespace shoal::learn::logistic
