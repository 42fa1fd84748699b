// First values of rows: a function of (seed, key, element) alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ps/types.h"

namespace shoal::ps {

// A bijection of 64 bits that spreads every input bit over all output bits (the finalizer of
// splitmix64, Steele et al. 2014). Also what sparse keys are hashed with.
constexpr uint64_t Mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Writes the first value of row `key` to row[0 .. dim). O(dim).
void InitializeRow(const InitializerSpec& spec, Key key, size_t dim, float* row);

}  // namespace shoal::ps
