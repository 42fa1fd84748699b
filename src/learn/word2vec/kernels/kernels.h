// The arithmetic of word2vec with negative sampling: blocks of a few context rows against a few
// output rows, as register-blocked matrix products, and the row operations of the exchange.
//
// One source compiled for several instruction sets (Highway), chosen at run time. The trainer's
// threads call these; nothing here knows about words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::learn::word2vec {

// Rows are padded with zeros to a multiple of this many floats, one cache line, and begin at one.
inline constexpr size_t kRowFloats = 16;

// Asks for a cache line as its only owner: it is going to be written, and where another core has
// it, a second journey for the right to write costs as much as the first for the data. The compiler
// would emit PREFETCHW only for a later baseline; processors without it ignore it.
inline void PrefetchForWriting(const void* line) {
#ifdef __x86_64__
  asm volatile("prefetchw (%0)" : : "r"(line));
#else
  __builtin_prefetch(line, 1, 3);
#endif
}

inline constexpr size_t Stride(size_t dim) {
  return (dim + kRowFloats - 1) / kRowFloats * kRowFloats;
}
// Floats that Block::gradients must have room for.
inline constexpr size_t GradientFloats(size_t contexts, size_t outputs) {
  return contexts * outputs + 2 * kRowFloats;
}

// One step of gradient ascent of  Σₘ wₘ [log σ(xₘ·y₀) + Σₙ log σ(−xₘ·yₙ)]  (Mikolov et al. 2013,
// "Distributed Representations of Words and Phrases", eq. 4) over m contexts x and n outputs y.
// Rows are [stride], 64-byte aligned; the contexts are distinct and so are the outputs.
struct Block {
  float* const* contexts = nullptr;  // [m]
  const float* weights = nullptr;    // [m], how often each context stands in the window; null: once
  float* const* outputs = nullptr;   // [n]; the first is the true word, the others are noise
  const float* labels = nullptr;     // [n], 0 or 1 of each output instead; null: as just said
  uint32_t m = 0;
  uint32_t n = 0;
  uint32_t stride = 0;            // floats a row, a multiple of kRowFloats
  float alpha = 0;                // learning rate
  float* const* ahead = nullptr;  // [fetched] rows of later blocks, to be fetched meanwhile: all at
  uint32_t fetched = 0;           // once they would wait for each other
  float* gradients = nullptr;     // scratch [GradientFloats(m, n)], 64-byte aligned; holds
                               // α·wₘ·(label − σ(xₘ·yₙ)) afterwards, row m at m·n, where n ≤ 6
};

// Functions for one instruction set. Constant, lives for ever; thread-safe (rows are read and
// written without synchronisation, as Hogwild does).
struct Kernels {
  const char* name = "";

  // Up to 6 outputs are updated simultaneously with all contexts: every dot product is taken before
  // any row changes. More outputs are done in turns of 6. O(m·n·stride).
  void (*skipgram)(const Block& block) = nullptr;
  // The contexts' weighted mean takes the place of a context; what it would have moved by is added
  // to every context, w times (as word2vec.c does, not divided by their number). `mean` is scratch
  // [2 × stride], 64-byte aligned.
  void (*cbow)(const Block& block, float* mean) = nullptr;

  // delta = local − base; gives Σ delta². [size], size a multiple of kRowFloats, rows aligned; so
  // below.
  float (*subtract)(const float* local, const float* base, float* delta, size_t size) = nullptr;
  // The answer to a push of `delta`: local += server − (base + delta), base = server; gives
  // Σ server².
  float (*absorb)(float* local, float* base, const float* delta, const float* server,
                  size_t size) = nullptr;
  // A copy meets the row that it is a copy of. Both have moved since they were copy_base, by d and
  // o; all three become copy_base + (1 − d·o / 2d·d) d + (1 − d·o / 2o·o) o, in which each loses
  // half of what it shares with the other's direction (Maleki et al. 2021, "Scaling Distributed
  // Training with Adaptive Summation"): the mean of two that are alike, the sum of two at right
  // angles.
  void (*merge)(float* copy, float* copy_base, float* shared, size_t size) = nullptr;
  // to = from, where others may write `from` meanwhile.
  void (*copy)(const float* from, float* to, size_t size) = nullptr;
  // out[i] = 1 / (1 + exp(−in[i])), size a multiple of kRowFloats. For tests.
  void (*sigmoid)(const float* in, float* out, size_t size) = nullptr;
};

// The names that this machine can run, best first: of "avx512", "avx2", "sse4", and always
// "scalar".
std::vector<std::string_view> AvailableKernels();

// "auto" is what SHOAL_SIMD names, else the best. InvalidArgument for a name that this machine
// cannot run.
Result<const Kernels*> ChooseKernels(std::string_view name);

}  // namespace shoal::learn::word2vec
