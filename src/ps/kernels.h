// What a push does to rows: the optimizers, with SIMD chosen at run time (Highway).
//
// Called by table.cc for batches of at most kBatchRows resolved rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ps/types.h"

namespace shoal::ps {

inline constexpr size_t kBatchRows = 256;

struct RowBatch {
  float* const* rows = nullptr;          // n stored rows; repeated ones are handled in order
  const float* const* deltas = nullptr;  // n rows of dim floats
  float* const* out = nullptr;           // n rows that get the new values; null: none
  size_t n = 0;
  size_t dim = 0;
  size_t state_offset = 0;  // floats from a row to its optimizer state (AdaGrad)
  OptimizerSpec optimizer;
};

// Applies the optimizer to every row and copies the new row out where asked for. Results differ
// from the formulas in types.h, evaluated in double, by at most 4 ulp of the largest operand.
// O(n · dim); prefetches ahead. Thread-safe on disjoint rows.
void ApplyBatch(const RowBatch& batch);

// out[i] = rows[i].
void CopyBatch(const float* const* rows, float* const* out, size_t n, size_t dim);

}  // namespace shoal::ps
