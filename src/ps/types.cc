#include "ps/types.h"

#include <fmt/format.h>

#include <cmath>

namespace shoal::ps {

Status Validate(const TableSpec& spec) {
  if (spec.name.empty() || spec.name.size() > kMaxNameBytes) {
    return InvalidArgument(
        fmt::format("table name: got {} bytes, expected 1 to {}", spec.name.size(), kMaxNameBytes));
  }
  if (spec.dim < 1 || spec.dim > kMaxDim) {
    return InvalidArgument(
        fmt::format("table '{}': dim: got {}, expected 1 to {}", spec.name, spec.dim, kMaxDim));
  }
  if (spec.key_space == KeySpace::kDense && (spec.rows < 1 || spec.rows > kMaxDenseRows)) {
    return InvalidArgument(
        fmt::format("table '{}': rows of a dense table: got {}, expected 1 to {}", spec.name,
                    spec.rows, kMaxDenseRows));
  }
  if (!std::isfinite(spec.optimizer.lr) || !std::isfinite(spec.optimizer.eps) ||
      spec.optimizer.eps < 0) {
    return InvalidArgument(fmt::format(
        "table '{}': optimizer: got lr {} and eps {}, expected finite numbers, eps >= 0", spec.name,
        spec.optimizer.lr, spec.optimizer.eps));
  }
  if (!std::isfinite(spec.initializer.lo) || !std::isfinite(spec.initializer.hi) ||
      spec.initializer.lo > spec.initializer.hi) {
    return InvalidArgument(
        fmt::format("table '{}': initializer: got [{}, {}), expected finite bounds in order",
                    spec.name, spec.initializer.lo, spec.initializer.hi));
  }
  return Status::Ok();
}

}  // namespace shoal::ps
