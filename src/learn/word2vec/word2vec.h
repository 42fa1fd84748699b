// Registry entry of word2vec (learn/algorithm.h).
#pragma once

#include "learn/algorithm.h"

namespace shoal::learn::word2vec {

// Static storage.
const Algorithm& GetAlgorithm();

}  // namespace shoal::learn::word2vec
