// A matrix whose rows the kernels accept: padded, aligned, zero-initialised, on huge pages if the
// system provides them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.h"

namespace shoal::learn::word2vec {

// Owns its memory, which costs nothing until it is touched. Movable. Synchronising access to rows
// is the caller's responsibility.
class Matrix {
 public:
  Matrix() = default;
  // ResourceExhausted if the system has no memory.
  static Result<Matrix> Make(uint64_t rows, size_t dim);
  Matrix(Matrix&& other) noexcept { *this = std::move(other); }
  Matrix& operator=(Matrix&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(rows_, other.rows_);
    std::swap(dim_, other.dim_);
    std::swap(stride_, other.stride_);
    return *this;
  }
  ~Matrix();

  float* row(uint64_t index) { return data_ + index * stride_; }
  const float* row(uint64_t index) const { return data_ + index * stride_; }
  float* data() { return data_; }
  uint64_t rows() const { return rows_; }
  size_t dim() const { return dim_; }
  size_t stride() const { return stride_; }  // floats; dim rounded up to kRowFloats

 private:
  float* data_ = nullptr;
  size_t bytes_ = 0;
  uint64_t rows_ = 0;
  size_t dim_ = 0;
  size_t stride_ = 0;
};

}  // namespace shoal::learn::word2vec
