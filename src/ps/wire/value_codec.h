// Rows of f32 as they travel: bf16 or int8 with a scale (types.h, docs/formats/ps-wire.md).
//
// Called by clients for what they push (row_issuer.cc) and get (channel.cc), by lane.cc for the
// other end. SIMD chosen at run time; all instruction sets give the same bytes.
#pragma once

#include <cstddef>

#include "ps/types.h"

namespace shoal::ps {

// Writes n rows of dim values to `to`, one after the other, WireRowBytes each. Finite values stay
// finite; bf16 keeps NaN and infinity, an int8 row that has one comes out as NaN throughout. An
// int8 row whose largest value is below 1e-34 comes out as zeros.
void EncodeRows(ValueType type, const float* const* rows, size_t n, size_t dim, char* to);

// The other way. Deterministic: the same bytes give the same floats everywhere.
void DecodeRows(ValueType type, const char* from, size_t n, size_t dim, float* const* rows);

}  // namespace shoal::ps
