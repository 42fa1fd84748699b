// The optimizers: apply a push to rows, with SIMD chosen at run time (Highway).
//
// Called by table.cc for batches of at most kBatchRows resolved rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ps/storage/row_layout.h"
#include "ps/types.h"

namespace shoal::ps {

inline constexpr size_t kBatchRows = 256;

struct RowBatch {
  float* const* rows = nullptr;          // n stored rows; repeated ones are handled in order
  const float* const* deltas = nullptr;  // n rows of dim floats
  float* const* out = nullptr;           // n rows that get the new values; null: none
  size_t n = 0;
  RowLayout layout;
  const OptimizerSpec* optimizer = nullptr;
};

// Applies the optimizer to every row and copies the new row out where asked for. Results differ
// from the formulas in types.h, evaluated in double, by at most 4 ulp of the largest operand (for
// kFtrl: of max(|z|, l1) over the divisor; kAdam: 6 ulp). O(n · dim); prefetches ahead.
// Thread-safe on disjoint rows.
void ApplyBatch(const RowBatch& batch);

// Brings the state of a new, zeroed row, whose values are set, to where its optimizer starts.
void StartState(const OptimizerSpec& optimizer, const RowLayout& layout, float* row);

// out[i] = rows[i]; prefetches ahead.
void CopyBatch(const float* const* rows, float* const* out, size_t n, size_t dim);
// The same, one after the other: to[i * dim] = rows[i].
void GatherBatch(const float* const* rows, size_t n, size_t dim, float* to);

}  // namespace shoal::ps
