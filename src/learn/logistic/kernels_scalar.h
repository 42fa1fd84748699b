// Scalar kernels: the reference for the tests of the others.
#pragma once

#include "learn/logistic/kernels.h"

namespace shoal::learn::logistic {

// Avoids a division by 0 if a sum of roots is 0.
inline constexpr float kTiny = 1e-30f;

const Kernels* ScalarKernels();

// One feature's weight, and its step by the gradient g of the loss alone.
float FtrlWeight(const Rule& rule, const float* state);
void FtrlStep(const Rule& rule, float* state, float weight, float g);
void AdagradStep(const Rule& rule, float* state, float g);

}  // namespace shoal::learn::logistic
