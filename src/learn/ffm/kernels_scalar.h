// The kernels in plain C++, pair by pair: the reference that the others are tested against.
#pragma once

#include "learn/ffm/kernels.h"

namespace shoal::learn::ffm {

const Kernels* ScalarKernels();

}  // namespace shoal::learn::ffm
