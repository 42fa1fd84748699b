// Registry entry of factorization machines (learn/algorithm.h).
#pragma once

#include "learn/algorithm.h"

namespace shoal::learn::fm {

const Algorithm& GetAlgorithm();

}  // namespace shoal::learn::fm
