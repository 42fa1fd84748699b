// The frequent rows of a worker whose threads run on processors with several last-level caches: one
// copy for each such group of processors (host/machine/cache_domains.h), trained by all threads
// that run there, and merged into the worker's own rows now and then. A line that the threads of
// two groups write in turn would have to travel between their caches at every use.
//
// Made by training.cc, one a group; a trainer is told before each block which one to use.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "learn/word2vec/exchange/exchange_policy.h"
#include "learn/word2vec/kernels/kernels.h"
#include "learn/word2vec/kernels/matrix.h"
#include "learn/word2vec/kernels/row_locks.h"

namespace shoal::learn::word2vec {

// Rows are trained without locks; Merge and Load are thread-safe.
class DomainCopies {
 public:
  // Of the rows below `rows`. `shared`, `locks` and `kernels` outlive it.
  static Result<std::unique_ptr<DomainCopies>> Make(uint32_t rows, Matrix* const (&shared)[kTables],
                                                    RowLocks* locks, const Kernels* kernels);

  uint32_t rows() const { return rows_; }
  float* row(TableKind table, uint32_t row) { return copy_[table].row(row); }

  // The copy and the worker's row become what both have been moved by since they last met, combined
  // (Kernels::merge). Nothing for a row of which there is no copy.
  void Merge(TableKind table, uint32_t row);
  void MergeAll();

 private:
  DomainCopies(uint32_t rows, Matrix* const (&shared)[kTables], RowLocks* locks,
               const Kernels* kernels);

  const uint32_t rows_;
  Matrix* const shared_[kTables];
  RowLocks* const locks_;
  const Kernels* const kernels_;
  Matrix copy_[kTables];
  Matrix base_[kTables];  // what both were when they last met
};

}  // namespace shoal::learn::word2vec
