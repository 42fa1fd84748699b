// The peak of fused multiply-adds on one core, in f32 GFLOP/s, by instruction set.
//
// bench/word2vec.py compares the trainer's kernels with this peak; it builds and runs this program
// between its rounds. Prints one JSON object: {"avx512": 262.1, "avx2": 131.5, "best": 262.1};
// instruction sets that this machine lacks are absent.
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kChains = 12;  // independent accumulators: enough to hide the latency on both ports
constexpr int kSteps = 200'000;  // a few milliseconds a pass
constexpr int kPasses = 15;

// Keeps the compiler from dropping or merging what the accumulators hold.
template <typename V>
inline void Keep(V& value) {
  asm volatile("" : "+v"(value));
}

__attribute__((target("avx512f"))) double PassAvx512() {
  __m512 sums[kChains];
  for (auto& sum : sums) sum = _mm512_set1_ps(1.0f);
  __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  Keep(a), Keep(b);
  const auto begin = Clock::now();
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_fmadd_ps(sums[i], a, b);
  }
  const std::chrono::duration<double> seconds = Clock::now() - begin;
  for (auto& sum : sums) Keep(sum);
  return 2.0 * 16 * kChains * kSteps / seconds.count() / 1e9;
}

__attribute__((target("avx2,fma"))) double PassAvx2() {
  __m256 sums[kChains];
  for (auto& sum : sums) sum = _mm256_set1_ps(1.0f);
  __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  Keep(a), Keep(b);
  const auto begin = Clock::now();
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm256_fmadd_ps(sums[i], a, b);
  }
  const std::chrono::duration<double> seconds = Clock::now() - begin;
  for (auto& sum : sums) Keep(sum);
  return 2.0 * 8 * kChains * kSteps / seconds.count() / 1e9;
}

double Best(double (*pass)()) {
  double best = 0;
  for (int i = 0; i < kPasses; ++i) best = std::max(best, pass());
  return best;
}

}  // namespace

int main() {
  double best = 0;
  std::printf("{");
  if (__builtin_cpu_supports("avx512f")) {
    best = Best(PassAvx512);
    std::printf("\"avx512\": %.1f, ", best);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    const double avx2 = Best(PassAvx2);
    best = std::max(best, avx2);
    std::printf("\"avx2\": %.1f, ", avx2);
  }
  std::printf("\"best\": %.1f}\n", best);
  return 0;
}
