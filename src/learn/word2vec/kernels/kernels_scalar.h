// Scalar kernels, for machines without vector instructions and as the reference for the tests of
// the others.
#pragma once

#include "learn/word2vec/kernels/kernels.h"

namespace shoal::learn::word2vec {

// Static storage.
const Kernels* ScalarKernels();

}  // namespace shoal::learn::word2vec
