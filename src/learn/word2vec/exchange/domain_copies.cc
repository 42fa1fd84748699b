#include "learn/word2vec/exchange/domain_copies.h"

namespace shoal::learn::word2vec {

DomainCopies::DomainCopies(uint32_t rows, Matrix* const (&shared)[kTables], RowLocks* locks,
                           const Kernels* kernels)
    : rows_(rows), shared_{shared[kInput], shared[kOutput]}, locks_(locks), kernels_(kernels) {}

Result<std::unique_ptr<DomainCopies>> DomainCopies::Make(uint32_t rows,
                                                         Matrix* const (&shared)[kTables],
                                                         RowLocks* locks, const Kernels* kernels) {
  std::unique_ptr<DomainCopies> copies(new DomainCopies(rows, shared, locks, kernels));
  for (const TableKind table : {kInput, kOutput}) {
    TRY_ASSIGN(copies->copy_[table], Matrix::Make(rows, shared[table]->dim()));
    TRY_ASSIGN(copies->base_[table], Matrix::Make(rows, shared[table]->dim()));
    for (uint32_t row = 0; row < rows; ++row) {
      kernels->copy(shared[table]->row(row), copies->copy_[table].row(row),
                    shared[table]->stride());
      kernels->copy(shared[table]->row(row), copies->base_[table].row(row),
                    shared[table]->stride());
    }
  }
  return copies;
}

void DomainCopies::Merge(TableKind table, uint32_t row) {
  if (row >= rows_) return;
  const RowLocks::Guard guard(*locks_, table, row);
  kernels_->merge(copy_[table].row(row), base_[table].row(row), shared_[table]->row(row),
                  shared_[table]->stride());
}

void DomainCopies::MergeAll() {
  for (const TableKind table : {kInput, kOutput}) {
    for (uint32_t row = 0; row < rows_; ++row) Merge(table, row);
  }
}

}  // namespace shoal::learn::word2vec
