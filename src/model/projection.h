// Principal components: the directions in which vectors differ most. Used by `shoal map`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace shoal::model {

// Points in the plane of the first two components.
struct Projection {
  std::vector<double> points;           // [rows × 2]
  std::vector<double> shares = {0, 0};  // of the variance, of each component
};

// Projects rows [rows × dim] onto their first two principal components, after subtracting their
// mean. NaN and infinity count as 0. Deterministic: each component's largest coordinate is
// positive. By orthogonal iteration of a block of 8 (Golub and Van Loan, Matrix
// Computations, 8.2.4), until both directions change by less than 1e-6, at most 300 times: O(rows ·
// dim) each, O(8 · dim) memory besides a copy. InvalidArgument for fewer than 3 rows or no
// dimension.
Result<Projection> PrincipalPlane(std::span<const float> rows, uint64_t dim);

}  // namespace shoal::model
