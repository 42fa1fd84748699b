// The kernels in plain C++: what runs where there are no vector instructions, and what the others
// are tested against.
#pragma once

#include "learn/word2vec/kernels/kernels.h"

namespace shoal::learn::word2vec {

// Constant, lives for ever.
const Kernels* ScalarKernels();

}  // namespace shoal::learn::word2vec
