// Registry entry of sparse logistic regression (learn/algorithm.h).
#pragma once

#include "learn/algorithm.h"

namespace shoal::learn::logistic {

const Algorithm& GetAlgorithm();

}  // namespace shoal::learn::logistic
