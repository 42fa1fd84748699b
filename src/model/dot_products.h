// Dot products in bulk, with SIMD chosen at run time. Private to this room: VectorIndex calls it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal::model {

inline constexpr size_t kPanelRows = 64;

// The dot products of `query` with `rows` rows that are `stride` floats apart, into `scores`.
// stride is a multiple of 16 and the query is padded with zeros to it.
void ScoreRows(const float* query, const float* units, size_t rows, size_t stride, float* scores);

// Up to kPanelRows rows (missing ones as zeros), transposed: panel[k · kPanelRows + r] is value k
// of row r.
void PackPanel(const float* units, size_t rows, size_t stride, size_t dim, float* panel);

// scores[q · kPanelRows + r] = query q · row r for `queries` queries, `query_stride` floats apart.
// A register-blocked matrix product.
void ScorePanel(const float* query, size_t queries, size_t query_stride, const float* panel,
                size_t dim, float* scores);

}  // namespace shoal::model
