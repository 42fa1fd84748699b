// Compiled once for each instruction set by foreach_target.h, which includes this file repeatedly.
// 32 vector registers hold a tile of 4 contexts × 6 outputs, 16 registers one of 2 × 6.
#include "learn/word2vec/kernels/kernels.h"

#include <algorithm>
#include <cmath>

#include "learn/word2vec/kernels/kernels_scalar.h"

// AVX3_DL has no advantage here; below SSE4 the scalar functions are used.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "learn/word2vec/kernels/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "learn/simd/kernel_dispatch.h"

#if SHOAL_TARGET_HAS_KERNELS

HWY_BEFORE_NAMESPACE();
namespace shoal::learn::word2vec {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

#define SHOAL_UNROLL _Pragma("GCC unroll 32")

// Outputs that one tile updates together, and contexts whose dot products are taken together.
constexpr uint32_t kTileOutputs = 6;
#if HWY_TARGET == HWY_AVX3
constexpr uint32_t kTileContexts = 4;
#else
constexpr uint32_t kTileContexts = 2;
#endif

// 1 / (1 + 2^t), t = −x·log₂e, by a polynomial of degree 5 on [−½, ½] (relative error 3e-7) and the
// exponent's bits. |x| is cut at 30.
HWY_INLINE V Sigmoid(D d, V x) {
  const V bound = hn::Set(d, 30.0f);
  const V t = hn::Mul(hn::Max(hn::Min(x, bound), hn::Neg(bound)), hn::Set(d, -1.44269504f));
  const auto whole = hn::NearestInt(t);
  const V f = hn::Sub(t, hn::ConvertTo(d, whole));
  V p = hn::Set(d, 1.3333558e-3f);
  p = hn::MulAdd(p, f, hn::Set(d, 9.6181291e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.5504109e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022651e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 6.9314718e-1f));
  const V one = hn::Set(d, 1.0f);
  p = hn::MulAdd(p, f, one);
  const hn::RebindToSigned<D> di;
  p = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(whole)));
  return hn::Div(one, hn::Add(p, one));
}

// Four accumulators → their four sums in every 128-bit block, of that block's lanes alone.
HWY_INLINE V SumsInBlocks(D d, V a, V b, V c, V e) {
  const hn::Repartition<double, D> dd;
  const V ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const V ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto low = hn::InterleaveLower(dd, hn::BitCast(dd, ab), hn::BitCast(dd, ce));
  const auto high = hn::InterleaveUpper(dd, hn::BitCast(dd, ab), hn::BitCast(dd, ce));
  return hn::Add(hn::BitCast(d, low), hn::BitCast(d, high));
}

// C accumulators → C sums at `out` (room for C rounded up to a whole vector; whole vectors are
// stored so that Gradients can load them back without waiting for the cache).
template <uint32_t C>
HWY_INLINE void StoreSums(D d, const V* HWY_RESTRICT sums, float* HWY_RESTRICT out) {
  constexpr uint32_t kLanes = hn::MaxLanes(D());
  constexpr uint32_t kQuads = kLanes / 4;
  SHOAL_UNROLL
  for (uint32_t i = 0; i < C; i += kLanes) {
    V q[kQuads];
    SHOAL_UNROLL
    for (uint32_t j = 0; j < kQuads; ++j) {
      const uint32_t at = i + 4 * j;
      q[j] = at >= C ? hn::Zero(d)
                     : SumsInBlocks(d, sums[at], at + 1 < C ? sums[at + 1] : hn::Zero(d),
                                    at + 2 < C ? sums[at + 2] : hn::Zero(d),
                                    at + 3 < C ? sums[at + 3] : hn::Zero(d));
    }
#if HWY_TARGET == HWY_AVX3
    const V even =
        hn::Add(hn::ConcatLowerLower(d, q[2], q[0]), hn::ConcatUpperUpper(d, q[2], q[0]));
    const V odd = hn::Add(hn::ConcatLowerLower(d, q[3], q[1]), hn::ConcatUpperUpper(d, q[3], q[1]));
    const V whole =
        hn::Add(hn::OddEvenBlocks(odd, even), hn::SwapAdjacentBlocks(hn::OddEvenBlocks(even, odd)));
#elif HWY_TARGET == HWY_AVX2
    const V whole =
        hn::Add(hn::ConcatLowerLower(d, q[1], q[0]), hn::ConcatUpperUpper(d, q[1], q[0]));
#else
    const V whole = q[0];
#endif
    hn::StoreU(whole, d, out + i);
  }
}

// Dot products of M contexts with N outputs → g[m·N + n].
template <uint32_t M, uint32_t N>
HWY_INLINE void Dots(float* const* contexts, float* const* outputs, uint32_t stride, float* g) {
  const D d;
  V sums[M * N];
  SHOAL_UNROLL
  for (uint32_t i = 0; i < M * N; ++i) sums[i] = hn::Zero(d);
  for (uint32_t k = 0; k < stride; k += static_cast<uint32_t>(hn::Lanes(d))) {
    V x[M];
    SHOAL_UNROLL
    for (uint32_t m = 0; m < M; ++m) x[m] = hn::Load(d, contexts[m] + k);
    SHOAL_UNROLL
    for (uint32_t n = 0; n < N; ++n) {
      const V y = hn::Load(d, outputs[n] + k);
      SHOAL_UNROLL
      for (uint32_t m = 0; m < M; ++m) sums[m * N + n] = hn::MulAdd(x[m], y, sums[m * N + n]);
    }
  }
  StoreSums<M * N>(d, sums, g);
}

template <uint32_t N>
HWY_INLINE void AllDots(const Block& block, float* const* outputs) {
  uint32_t m = 0;
  for (; m + kTileContexts <= block.m; m += kTileContexts) {
    Dots<kTileContexts, N>(block.contexts + m, outputs, block.stride, block.gradients + m * N);
  }
  float* const* rest = block.contexts + m;
  float* const g = block.gradients + m * N;
  switch (block.m - m) {
    case 3:
      if constexpr (kTileContexts > 3) Dots<3, N>(rest, outputs, block.stride, g);
      break;
    case 2:
      if constexpr (kTileContexts > 2) Dots<2, N>(rest, outputs, block.stride, g);
      break;
    case 1:
      Dots<1, N>(rest, outputs, block.stride, g);
      break;
    default:
      break;
  }
}

// α·w·(label − σ(dot)) in place of the dot products. `first` is the label of output 0 where there
// are no `labels`.
template <uint32_t N>
HWY_INLINE void Gradients(const Block& block, const float* labels, float first) {
  const D d;
  const V alpha = hn::Set(d, block.alpha);
  float* const g = block.gradients;
  for (uint32_t i = 0; i < block.m * N; i += static_cast<uint32_t>(hn::Lanes(d))) {
    hn::Store(hn::Mul(alpha, hn::Neg(Sigmoid(d, hn::Load(d, g + i)))), d, g + i);
  }
  if (labels == nullptr) {
    for (uint32_t m = 0; m < block.m; ++m) g[m * N] += block.alpha * first;
  } else {
    for (uint32_t m = 0; m < block.m; ++m) {
      for (uint32_t n = 0; n < N; ++n) g[m * N + n] += block.alpha * labels[n];
    }
  }
  if (block.weights == nullptr) return;
  for (uint32_t m = 0; m < block.m; ++m) {
    if (block.weights[m] == 1.0f) continue;
    for (uint32_t n = 0; n < N; ++n) g[m * N + n] *= block.weights[m];
  }
}

// x += g·y and y += g·x, with the previous x and y. Outputs and their sums stay in registers. The
// pass over the first outputs prefetches rows that are needed later, a few lines at a time.
template <uint32_t N>
HWY_INLINE void Update(const Block& block, float* const* outputs, float first) {
  const D d;
  const float* const g = block.gradients;
  const uint32_t fetched = first == 1.0f ? block.fetched : 0;
  for (uint32_t k = 0; k < block.stride; k += static_cast<uint32_t>(hn::Lanes(d))) {
    if (k % kRowFloats == 0) {
      for (uint32_t i = 0; i < fetched; ++i) PrefetchForWriting(block.ahead[i] + k);
    }
    V y[N];
    V sum[N];
    SHOAL_UNROLL
    for (uint32_t n = 0; n < N; ++n) sum[n] = y[n] = hn::Load(d, outputs[n] + k);
    const float* row = g;
    for (uint32_t m = 0; m < block.m; ++m, row += N) {
      float* const at = block.contexts[m] + k;
      const V x = hn::Load(d, at);
      V moved = x;
      SHOAL_UNROLL
      for (uint32_t n = 0; n < N; ++n) {
        const V factor = hn::Set(d, row[n]);
        moved = hn::MulAdd(factor, y[n], moved);
        sum[n] = hn::MulAdd(factor, x, sum[n]);
      }
      hn::Store(moved, d, at);
    }
    SHOAL_UNROLL
    for (uint32_t n = 0; n < N; ++n) hn::Store(sum[n], d, outputs[n] + k);
  }
}

template <uint32_t N>
HWY_NOINLINE void Tile(const Block& block, float* const* outputs, const float* labels,
                       float first) {
  AllDots<N>(block, outputs);
  Gradients<N>(block, labels, first);
  Update<N>(block, outputs, first);
}

void SkipGram(const Block& block) {
  float first = 1.0f;
  for (uint32_t done = 0; done < block.n; done += kTileOutputs, first = 0.0f) {
    float* const* const outputs = block.outputs + done;
    const float* const labels = block.labels == nullptr ? nullptr : block.labels + done;
    switch (std::min(block.n - done, kTileOutputs)) {
      case 1:
        Tile<1>(block, outputs, labels, first);
        break;
      case 2:
        Tile<2>(block, outputs, labels, first);
        break;
      case 3:
        Tile<3>(block, outputs, labels, first);
        break;
      case 4:
        Tile<4>(block, outputs, labels, first);
        break;
      case 5:
        Tile<5>(block, outputs, labels, first);
        break;
      default:
        Tile<6>(block, outputs, labels, first);
        break;
    }
  }
}

void Cbow(const Block& block, float* mean) {
  const D d;
  float* const moved = mean + block.stride;
  float total = 0;
  for (uint32_t m = 0; m < block.m; ++m) total += block.weights ? block.weights[m] : 1.0f;
  const V scale = hn::Set(d, 1.0f / total);
  const size_t lanes = hn::Lanes(d);
  for (size_t k = 0; k < block.stride; k += lanes) {
    V sum = hn::Zero(d);
    for (uint32_t m = 0; m < block.m; ++m) {
      const V w = hn::Set(d, block.weights ? block.weights[m] : 1.0f);
      sum = hn::MulAdd(w, hn::Load(d, block.contexts[m] + k), sum);
    }
    const V value = hn::Mul(sum, scale);
    hn::Store(value, d, mean + k);
    hn::Store(value, d, moved + k);
  }
  Block one = block;
  one.contexts = &moved;
  one.weights = nullptr;
  one.m = 1;
  SkipGram(one);
  for (size_t k = 0; k < block.stride; k += lanes) {
    const V step = hn::Sub(hn::Load(d, moved + k), hn::Load(d, mean + k));
    for (uint32_t m = 0; m < block.m; ++m) {
      const V w = hn::Set(d, block.weights ? block.weights[m] : 1.0f);
      float* const at = block.contexts[m] + k;
      hn::Store(hn::MulAdd(w, step, hn::Load(d, at)), d, at);
    }
  }
}

float Subtract(const float* local, const float* base, float* delta, size_t size) {
  const D d;
  V squares = hn::Zero(d);
  for (size_t k = 0; k < size; k += hn::Lanes(d)) {
    const V difference = hn::Sub(hn::Load(d, local + k), hn::Load(d, base + k));
    squares = hn::MulAdd(difference, difference, squares);
    hn::Store(difference, d, delta + k);
  }
  return hn::GetLane(hn::SumOfLanes(d, squares));
}

float Absorb(float* local, float* base, const float* delta, const float* server, size_t size) {
  const D d;
  V squares = hn::Zero(d);
  for (size_t k = 0; k < size; k += hn::Lanes(d)) {
    const V s = hn::LoadU(d, server + k);
    squares = hn::MulAdd(s, s, squares);
    const V known = hn::Add(hn::Load(d, base + k), hn::LoadU(d, delta + k));
    hn::Store(hn::Add(hn::Load(d, local + k), hn::Sub(s, known)), d, local + k);
    hn::Store(s, d, base + k);
  }
  return hn::GetLane(hn::SumOfLanes(d, squares));
}

float Merge(float* copy, float* copy_base, float* shared, size_t size, float per_reach) {
  const D d;
  V products = hn::Zero(d);
  V own_squares = hn::Zero(d);
  V others_squares = hn::Zero(d);
  for (size_t k = 0; k < size; k += hn::Lanes(d)) {
    const V base = hn::Load(d, copy_base + k);
    const V own = hn::Sub(hn::Load(d, copy + k), base);
    const V others = hn::Sub(hn::Load(d, shared + k), base);
    products = hn::MulAdd(own, others, products);
    own_squares = hn::MulAdd(own, own, own_squares);
    others_squares = hn::MulAdd(others, others, others_squares);
  }
  const float product = hn::GetLane(hn::SumOfLanes(d, products));
  const float own_square = hn::GetLane(hn::SumOfLanes(d, own_squares));
  const float others_square = hn::GetLane(hn::SumOfLanes(d, others_squares));
  const float both = std::sqrt(own_square * others_square);
  const float sum = std::sqrt(std::max(0.0f, own_square + 2 * product + others_square));
  const float shed = product * std::min(1.0f, per_reach * sum) / 2;
  const V keep_own = hn::Set(d, own_square > 0 ? 1 - shed / std::max(own_square, both) : 1);
  const V keep_others =
      hn::Set(d, others_square > 0 ? 1 - shed / std::max(others_square, both) : 1);
  V length = hn::Zero(d);
  for (size_t k = 0; k < size; k += hn::Lanes(d)) {
    const V base = hn::Load(d, copy_base + k);
    const V own = hn::Sub(hn::Load(d, copy + k), base);
    const V others = hn::Sub(hn::Load(d, shared + k), base);
    const V merged = hn::MulAdd(keep_others, others, hn::MulAdd(keep_own, own, base));
    length = hn::MulAdd(merged, merged, length);
    hn::Store(merged, d, shared + k);
    hn::Store(merged, d, copy + k);
    hn::Store(merged, d, copy_base + k);
  }
  return hn::GetLane(hn::SumOfLanes(d, length));
}

void Copy(const float* from, float* to, size_t size) {
  const D d;
  for (size_t k = 0; k < size; k += hn::Lanes(d)) hn::Store(hn::Load(d, from + k), d, to + k);
}

void Sigmoids(const float* in, float* out, size_t size) {
  const D d;
  for (size_t k = 0; k < size; k += hn::Lanes(d))
    hn::Store(Sigmoid(d, hn::Load(d, in + k)), d, out + k);
}

}  // namespace

SHOAL_DEFINE_KERNEL_TABLE(SkipGram, Cbow, Subtract, Absorb, Merge, Copy, Sigmoids);

}  // namespace HWY_NAMESPACE
}  // namespace shoal::learn::word2vec
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET

#if HWY_ONCE
namespace shoal::learn::word2vec {
SHOAL_DEFINE_KERNEL_CHOICE();
}  // namespace shoal::learn::word2vec
#endif  // HWY_ONCE
