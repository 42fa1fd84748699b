// A thread's copies of the most frequent rows of a worker that trains with several threads: trained
// by that thread, and merged into the worker's own rows from time to time. Without them a cache
// line that all threads write would travel between their caches at every use.
//
// Made by training.cc, one for each thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "learn/word2vec/exchange/exchange_policy.h"
#include "learn/word2vec/kernels/kernels.h"
#include "learn/word2vec/kernels/matrix.h"
#include "learn/word2vec/kernels/row_locks.h"

namespace shoal::learn::word2vec {

// Rows are trained without locks. Merge and MergeAll are thread-safe.
class RowCopies {
 public:
  // Copies the rows below `rows`. `shared`, `locks` and `kernels` must outlive it.
  static Result<std::unique_ptr<RowCopies>> Make(uint32_t rows, Matrix* const (&shared)[kTables],
                                                 RowLocks* locks, const Kernels* kernels);

  uint32_t rows() const { return rows_; }
  float* row(TableKind table, uint32_t row) { return copy_[table].row(row); }

  // Merges the copy and the worker's row: both become the combination of their movements since the
  // last merge (Kernels::merge). Does nothing for rows without a copy.
  void Merge(TableKind table, uint32_t row);
  void MergeAll();

 private:
  RowCopies(uint32_t rows, Matrix* const (&shared)[kTables], RowLocks* locks,
            const Kernels* kernels);

  const uint32_t rows_;
  Matrix* const shared_[kTables];
  RowLocks* const locks_;
  const Kernels* const kernels_;
  Matrix copy_[kTables];
  Matrix base_[kTables];                     // value of both at the last merge
  std::atomic<float> square_[kTables] = {};  // mean square length of the rows merged lately
};

}  // namespace shoal::learn::word2vec
