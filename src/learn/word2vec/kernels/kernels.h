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

// Rows are padded with zeros to a multiple of this many floats, one cache line, and are aligned to
// it.
inline constexpr size_t kRowFloats = 16;

// Prefetches a cache line for writing. If another core has the line, acquiring it later for the
// write would cost as much as the first transfer. Compilers emit PREFETCHW only for later
// baselines; processors without it ignore it.
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
// Size of Block::gradients, in floats.
inline constexpr size_t GradientFloats(size_t contexts, size_t outputs) {
  return contexts * outputs + 2 * kRowFloats;
}

// One step of gradient ascent of  Σₘ wₘ [log σ(xₘ·y₀) + Σₙ log σ(−xₘ·yₙ)]  (Mikolov et al. 2013,
// "Distributed Representations of Words and Phrases", eq. 4) over m contexts x and n outputs y.
// Rows are [stride], 64-byte aligned; the contexts are distinct and so are the outputs.
struct Block {
  float* const* contexts = nullptr;  // [m]
  const float* weights = nullptr;    // [m], occurrences of each context in the window; null: all 1
  float* const* outputs = nullptr;   // [n]; the first is the true word, the others are noise
  const float* labels = nullptr;     // [n], labels 0 or 1 of the outputs; null: 1, 0, 0, …
  uint32_t m = 0;
  uint32_t n = 0;
  uint32_t stride = 0;            // floats a row, a multiple of kRowFloats
  float alpha = 0;                // learning rate
  float* const* ahead = nullptr;  // [fetched] rows of later blocks, to be fetched meanwhile: all at
  uint32_t fetched = 0;           // once they would wait for each other
  float* gradients = nullptr;     // scratch [GradientFloats(m, n)], 64-byte aligned; holds
                               // α·wₘ·(label − σ(xₘ·yₙ)) afterwards, row m at m·n, where n ≤ 6
};

// The functions for one instruction set. Static storage; thread-safe (rows are read and written
// without synchronisation, as in Hogwild).
struct Kernels {
  const char* name = "";

  // Trains all contexts against all outputs. Up to 6 outputs are updated simultaneously: all dot
  // products are computed before a row changes. More outputs are processed 6 at a time.
  // O(m·n·stride).
  void (*skipgram)(const Block& block) = nullptr;
  // Trains the contexts' weighted mean against the outputs. Its movement is added to every context,
  // w times (as in word2vec.c, not divided by their number). `mean` is scratch [2 × stride],
  // 64-byte aligned.
  void (*cbow)(const Block& block, float* mean) = nullptr;

  // delta = local − base; returns Σ delta². [size], a multiple of kRowFloats; rows are aligned,
  // here and below.
  float (*subtract)(const float* local, const float* base, float* delta, size_t size) = nullptr;
  // Applies the answer to a push of `delta`: local += server − (base + delta), base = server;
  // returns Σ server².
  float (*absorb)(float* local, float* base, const float* delta, const float* server,
                  size_t size) = nullptr;
  // Merges a copy and its original row, which have moved since copy_base, by d and o: all three
  // become copy_base + (1 − r d·o / 2 max(d·d, |d||o|)) d + (1 − r d·o / 2 max(o·o, |d||o|)) o,
  // with r = min(1, per_reach |d + o|). Returns the square of the merged row's length. With r = 1
  // each movement loses half of the component that it shares with the other's direction (Maleki et
  // al. 2021, "Scaling Distributed Training with Adaptive Summation"), at most half of itself:
  // equal movements give their mean, orthogonal ones their sum, parallel ones the longer. Movements
  // that are short, beside 1 / per_reach, are within the range where the loss is linear, and are
  // added.
  float (*merge)(float* copy, float* copy_base, float* shared, size_t size,
                 float per_reach) = nullptr;
  // to = from, while other threads may write `from`.
  void (*copy)(const float* from, float* to, size_t size) = nullptr;
  // out[i] = 1 / (1 + exp(−in[i])), size a multiple of kRowFloats. For tests.
  void (*sigmoid)(const float* in, float* out, size_t size) = nullptr;
};

// The instruction sets that this machine can run, best first: of "avx512", "avx2", "sse4", and
// always "scalar".
std::vector<std::string_view> AvailableKernels();

// Finds the functions by name; "auto" means the value of SHOAL_SIMD, else the best. InvalidArgument
// for a name that this machine cannot run.
Result<const Kernels*> ChooseKernels(std::string_view name);

}  // namespace shoal::learn::word2vec
