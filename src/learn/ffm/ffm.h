// Field-aware factorization machines as an entry of the registry (learn/algorithm.h).
#pragma once

#include "learn/algorithm.h"

namespace shoal::learn::ffm {

const Algorithm& GetAlgorithm();

}  // namespace shoal::learn::ffm
