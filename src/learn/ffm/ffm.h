// Registry entry of field-aware factorization machines (learn/algorithm.h).
#pragma once

#include "learn/algorithm.h"

namespace shoal::learn::ffm {

const Algorithm& GetAlgorithm();

}  // namespace shoal::learn::ffm
