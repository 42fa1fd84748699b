// Scalar kernels, pair by pair: the reference for the tests of the others.
#pragma once

#include "learn/ffm/kernels.h"

namespace shoal::learn::ffm {

const Kernels* ScalarKernels();

}  // namespace shoal::learn::ffm
