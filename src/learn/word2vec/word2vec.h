// Word2vec as an algorithm of the registry (learn/algorithm.h).
#pragma once

#include "learn/algorithm.h"

namespace shoal::learn::word2vec {

// Constant, lives for ever.
const Algorithm& GetAlgorithm();

}  // namespace shoal::learn::word2vec
