// Copies of frequent rows for workers that run on processors with several last-level caches: one
// copy for each cache domain (host/machine/cache_domains.h), trained by the threads in it and
// merged into the worker's own rows from time to time. Without them a cache line written by threads
// of two domains would travel between the caches at every use.
//
// Made by training.cc, one for each domain; a trainer is told before each block which one to use.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "learn/word2vec/exchange/exchange_policy.h"
#include "learn/word2vec/kernels/kernels.h"
#include "learn/word2vec/kernels/matrix.h"
#include "learn/word2vec/kernels/row_locks.h"

namespace shoal::learn::word2vec {

// Rows are trained without locks. Merge and MergeAll are thread-safe.
class DomainCopies {
 public:
  // Copies the rows below `rows`. `shared`, `locks` and `kernels` must outlive it.
  static Result<std::unique_ptr<DomainCopies>> Make(uint32_t rows, Matrix* const (&shared)[kTables],
                                                    RowLocks* locks, const Kernels* kernels);

  uint32_t rows() const { return rows_; }
  float* row(TableKind table, uint32_t row) { return copy_[table].row(row); }

  // Merges the copy and the worker's row: both become the combination of their movements since the
  // last merge (Kernels::merge). Does nothing for rows without a copy.
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
  Matrix base_[kTables];  // value of both at the last merge
};

}  // namespace shoal::learn::word2vec
