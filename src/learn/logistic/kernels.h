// The arithmetic of sparse logistic regression: one example's prediction and update, under
// FTRL-proximal or AdaGrad, and the weights that a state stands for.
//
// Every feature has two floats of state side by side, [first, second]:
//   ftrl     [z, n]   w = −(z − sign(z)·λ₁)⁺ / ((β + √n)/α + λ₂)      (McMahan et al. 2013, Alg. 1)
//            g = (p − y)·x;  z += g − (√(n + g²) − √n)/α · w;  n += g²
//   adagrad  [w, n]   g = (p − y)·x + λ₂·w;  n += g²;  η = α / (β + √n)
//            w −= η·g, then moved towards 0 by η·λ₁, not beyond       (Duchi et al. 2011, §1.1, §5)
// Both sums of an FTRL state only ever grow by addition: so the servers' "add" is its merge
// (docs/adr/0030).
//
// One source compiled for several instruction sets (Highway), chosen at run time. The trainer's
// threads call these; nothing here knows of files or servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::learn::logistic {

// α, β, λ₁, λ₂.
struct Rule {
  float alpha = 1;
  float beta = 1;
  float l1 = 0;
  float l2 = 0;
};

// An example x: values[i] · scale at features[i], which differ from each other.
struct Row {
  const uint32_t* features = nullptr;  // [count]
  const float* values = nullptr;       // [count]; null: all are 1
  uint32_t count = 0;
  float scale = 1;
};

// Working memory of one thread; grows to the longest row.
class Scratch {
 public:
  // Lanes are filled up to whole vectors with zeros.
  static constexpr size_t kPad = 16;
  void Reserve(size_t count) {
    if (state.size() >= 2 * (count + kPad)) return;
    const size_t size = count + count / 2 + kPad;
    state.resize(2 * size);
    weights.resize(size);
    roots.resize(size);
    values.resize(size);
  }
  std::vector<float> state;    // [first, second] of the row's features
  std::vector<float> weights;  // w
  std::vector<float> roots;    // √n
  std::vector<float> values;   // x
};

// Functions for one instruction set. Constant, lives for ever; thread-safe (states are read and
// written without synchronisation, as Hogwild does).
struct Kernels {
  const char* name = "";

  // One step on (row, label 0 or 1). `bias` is the state of a feature of value 1 that every example
  // has; null: none. Gives the margin w·x before the step. O(count), no allocation once warm.
  float (*ftrl)(const Rule& rule, float* state, float* bias, const Row& row, float label,
                Scratch* scratch) = nullptr;
  float (*adagrad)(const Rule& rule, float* state, float* bias, const Row& row, float label,
                   Scratch* scratch) = nullptr;
  // weights[i] of `count` FTRL states.
  void (*ftrl_weights)(const Rule& rule, const float* state, size_t count,
                       float* weights) = nullptr;
};

// The names that this machine can run, best first: of "avx512", "avx2", "sse4", and always
// "scalar".
std::vector<std::string_view> AvailableKernels();

// "auto" is what SHOAL_SIMD names, else the best. InvalidArgument for a name that this machine
// cannot run.
Result<const Kernels*> ChooseKernels(std::string_view name);

// w·x by plain weights. O(count).
float Margin(const float* weights, float bias, const Row& row);

// 1 / (1 + exp(−margin)).
float Probability(float margin);

// 1 / ‖values‖, or 1 for an example of zeros.
float UnitScale(const float* values, size_t count);

}  // namespace shoal::learn::logistic
