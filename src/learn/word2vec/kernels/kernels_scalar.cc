#include "learn/word2vec/kernels/kernels_scalar.h"

#include <algorithm>
#include <cmath>

namespace shoal::learn::word2vec {
namespace {

constexpr uint32_t kTileOutputs = 6;

float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-std::clamp(x, -30.0f, 30.0f))); }

// The outputs [done, done + n_outputs).
void Tile(const Block& block, uint32_t done, uint32_t n_outputs) {
  float* const* const outputs = block.outputs + done;
  float* const g = block.gradients;
  for (uint32_t m = 0; m < block.m; ++m) {
    const float w = block.weights ? block.weights[m] : 1.0f;
    for (uint32_t n = 0; n < n_outputs; ++n) {
      float dot = 0;
      for (uint32_t k = 0; k < block.stride; ++k) dot += block.contexts[m][k] * outputs[n][k];
      const bool first = done + n == 0;
      const float label = block.labels != nullptr ? block.labels[done + n] : first ? 1.0f : 0.0f;
      g[m * n_outputs + n] = block.alpha * w * (label - Sigmoid(dot));
    }
  }
  for (uint32_t k = 0; k < block.stride; ++k) {
    float moved[kTileOutputs];
    for (uint32_t n = 0; n < n_outputs; ++n) moved[n] = outputs[n][k];
    for (uint32_t m = 0; m < block.m; ++m) {
      const float x = block.contexts[m][k];
      float sum = x;
      for (uint32_t n = 0; n < n_outputs; ++n) {
        sum += g[m * n_outputs + n] * outputs[n][k];
        moved[n] += g[m * n_outputs + n] * x;
      }
      block.contexts[m][k] = sum;
    }
    for (uint32_t n = 0; n < n_outputs; ++n) outputs[n][k] = moved[n];
  }
}

void SkipGram(const Block& block) {
  for (uint32_t done = 0; done < block.n; done += kTileOutputs) {
    Tile(block, done, std::min(block.n - done, kTileOutputs));
  }
}

void Cbow(const Block& block, float* mean) {
  float* moved = mean + block.stride;
  float total = 0;
  for (uint32_t m = 0; m < block.m; ++m) total += block.weights ? block.weights[m] : 1.0f;
  for (uint32_t k = 0; k < block.stride; ++k) {
    float sum = 0;
    for (uint32_t m = 0; m < block.m; ++m)
      sum += (block.weights ? block.weights[m] : 1.0f) * block.contexts[m][k];
    mean[k] = moved[k] = sum * (1.0f / total);
  }
  Block one = block;
  one.contexts = &moved;
  one.weights = nullptr;
  one.m = 1;
  SkipGram(one);
  for (uint32_t m = 0; m < block.m; ++m) {
    const float w = block.weights ? block.weights[m] : 1.0f;
    for (uint32_t k = 0; k < block.stride; ++k) block.contexts[m][k] += w * (moved[k] - mean[k]);
  }
}

float Subtract(const float* local, const float* base, float* delta, size_t size) {
  float squares = 0;
  for (size_t k = 0; k < size; ++k) {
    delta[k] = local[k] - base[k];
    squares += delta[k] * delta[k];
  }
  return squares;
}

float Absorb(float* local, float* base, const float* delta, const float* server, size_t size) {
  float squares = 0;
  for (size_t k = 0; k < size; ++k) {
    local[k] += server[k] - (base[k] + delta[k]);
    base[k] = server[k];
    squares += server[k] * server[k];
  }
  return squares;
}

float Merge(float* copy, float* copy_base, float* shared, size_t size, float per_reach) {
  float product = 0;
  float own_squares = 0;
  float others_squares = 0;
  for (size_t k = 0; k < size; ++k) {
    const float own = copy[k] - copy_base[k];
    const float others = shared[k] - copy_base[k];
    product += own * others;
    own_squares += own * own;
    others_squares += others * others;
  }
  const float both = std::sqrt(own_squares * others_squares);
  const float sum = std::sqrt(std::max(0.0f, own_squares + 2 * product + others_squares));
  const float shed = product * std::min(1.0f, per_reach * sum) / 2;
  const float keep_own = own_squares > 0 ? 1 - shed / std::max(own_squares, both) : 1;
  const float keep_others = others_squares > 0 ? 1 - shed / std::max(others_squares, both) : 1;
  float length = 0;
  for (size_t k = 0; k < size; ++k) {
    const float own = copy[k] - copy_base[k];
    const float others = shared[k] - copy_base[k];
    copy[k] = shared[k] = copy_base[k] += keep_own * own + keep_others * others;
    length += copy[k] * copy[k];
  }
  return length;
}

void Copy(const float* from, float* to, size_t size) {
  for (size_t k = 0; k < size; ++k) to[k] = from[k];
}

void Sigmoids(const float* in, float* out, size_t size) {
  for (size_t k = 0; k < size; ++k) out[k] = Sigmoid(in[k]);
}

constexpr Kernels kTable = {"scalar", SkipGram, Cbow, Subtract, Absorb, Merge, Copy, Sigmoids};

}  // namespace

const Kernels* ScalarKernels() { return &kTable; }

}  // namespace shoal::learn::word2vec
