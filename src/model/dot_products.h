// Dot products in bulk, with SIMD chosen at run time. Private to this room; used by VectorIndex.
// All functions are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal::model {

inline constexpr size_t kPanelRows = 64;

// Writes the dot products of `query` with `rows` rows, `stride` floats apart, to `scores`. `stride`
// is a multiple of 16, and the query is padded with zeros to it.
void ScoreRows(const float* query, const float* units, size_t rows, size_t stride, float* scores);

// Transposes up to kPanelRows rows (missing ones are zero): panel[k · kPanelRows + r] is value k of
// row r.
void PackPanel(const float* units, size_t rows, size_t stride, size_t dim, float* panel);

// scores[q · kPanelRows + r] = query q · row r for `queries` queries, `query_stride` floats apart.
// A register-blocked matrix product.
void ScorePanel(const float* query, size_t queries, size_t query_stride, const float* panel,
                size_t dim, float* scores);

}  // namespace shoal::model
