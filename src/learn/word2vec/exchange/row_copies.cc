#include "learn/word2vec/exchange/row_copies.h"

#include <algorithm>
#include <cmath>

namespace shoal::learn::word2vec {
namespace {

constexpr float kNewest = 0.01f;  // of the mean square length of merged rows

}  // namespace

RowCopies::RowCopies(uint32_t rows, Matrix* const (&shared)[kTables], RowLocks* locks,
                     const Kernels* kernels)
    : rows_(rows), shared_{shared[kInput], shared[kOutput]}, locks_(locks), kernels_(kernels) {}

Result<std::unique_ptr<RowCopies>> RowCopies::Make(uint32_t rows, Matrix* const (&shared)[kTables],
                                                   RowLocks* locks, const Kernels* kernels) {
  std::unique_ptr<RowCopies> copies(new RowCopies(rows, shared, locks, kernels));
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

void RowCopies::Merge(TableKind table, uint32_t row) {
  if (row >= rows_) return;
  const TableKind partners = table == kInput ? kOutput : kInput;
  const float partner =
      std::sqrt(std::max(1.0f, square_[partners].load(std::memory_order_relaxed)));
  const RowLocks::Guard guard(*locks_, table, row);
  const float square = kernels_->merge(copy_[table].row(row), base_[table].row(row),
                                       shared_[table]->row(row), shared_[table]->stride(),
                                       partner / static_cast<float>(ExchangePolicy::kReach));
  const float mean = square_[table].load(std::memory_order_relaxed);
  square_[table].store(mean + kNewest * (square - mean), std::memory_order_relaxed);
}

void RowCopies::MergeAll() {
  for (const TableKind table : {kInput, kOutput}) {
    for (uint32_t row = 0; row < rows_; ++row) Merge(table, row);
  }
}

}  // namespace shoal::learn::word2vec
