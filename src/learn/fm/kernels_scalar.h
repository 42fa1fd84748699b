// Scalar kernels: the reference for the tests of the others.
#pragma once

#include "learn/fm/kernels.h"

namespace shoal::learn::fm {

const Kernels* ScalarKernels();

// 32 bits from 32 (Wellons 2018, "lowbias32").
inline uint32_t Mix32(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// x of the row's feature i.
inline float Value(const Row& row, uint32_t i) {
  return row.values == nullptr ? row.scale : row.scale * row.values[i];
}

// Size of Scratch::factors: S, then v of every feature.
inline size_t ScratchFloats(const Rule& rule, uint32_t count) {
  return size_t{rule.stored} * (count + 1);
}

}  // namespace shoal::learn::fm
