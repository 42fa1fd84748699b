#include "learn/word2vec/kernels/matrix.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include "learn/word2vec/kernels/kernels.h"

namespace shoal::learn::word2vec {

Result<Matrix> Matrix::Make(uint64_t rows, size_t dim) {
  Matrix matrix;
  matrix.rows_ = rows;
  matrix.dim_ = dim;
  matrix.stride_ = Stride(dim);
  const size_t bytes = std::max<size_t>(rows, 1) * matrix.stride_ * sizeof(float);
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return ResourceExhausted(
        fmt::format("no memory for a matrix of {} rows of {} floats ({} MiB); use a smaller dim or "
                    "a larger min_count",
                    rows, dim, bytes >> 20));
  }
  madvise(memory, bytes,
          MADV_HUGEPAGE);  // best effort; fewer TLB misses give about 10 % more speed
  matrix.data_ = static_cast<float*>(memory);
  matrix.bytes_ = bytes;
  return matrix;
}

Matrix::~Matrix() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace shoal::learn::word2vec
