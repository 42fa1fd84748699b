// The arithmetic of sparse logistic regression: one example's prediction and update, under
// FTRL-proximal or AdaGrad, and the weights that a state stands for.
//
// (p − y) stands for the error of the rule's loss, times the weight of the example.
//
// Every feature has two floats of state side by side, [first, second]:
//   ftrl     [z, n]   w = −(z − sign(z)·λ₁)⁺ / ((β + √n)/α + λ₂)      (McMahan et al. 2013, Alg. 1)
//            g = (p − y)·x;  z += g − (√(n + g²) − √n)/α · w;  n += g²
//   adagrad  [w, n]   g = (p − y)·x + λ₂·w;  n += g²;  η = α / (β + √n)
//            w −= η·g, then moved towards 0 by η·λ₁, not beyond       (Duchi et al. 2011, §1.1, §5)
// How several workers' states are merged: learn/sparse/exchange/replay.h.
//
// One source compiled for several instruction sets (Highway), chosen at run time. The trainer's
// threads call these; nothing here knows of files or servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "learn/sparse/learner.h"

namespace shoal::learn::logistic {

// α, β, λ₁, λ₂.
struct Rule {
  float alpha = 1;
  float beta = 1;
  float l1 = 0;
  float l2 = 0;
  sparse::Loss loss = {};
};

using sparse::Row;
using sparse::Scratch;

// The functions for one instruction set. Static storage; thread-safe (states are read and written
// without synchronisation, as in Hogwild).
struct Kernels {
  const char* name = "";

  // One step on (row, label). `bias` is the state of a feature with value 1 in every
  // example; null: none. Returns the margin w·x before the step. O(count); does not allocate once
  // the scratch is large enough.
  float (*ftrl)(const Rule& rule, float* state, float* bias, const Row& row, float label,
                Scratch* scratch) = nullptr;
  float (*adagrad)(const Rule& rule, float* state, float* bias, const Row& row, float label,
                   Scratch* scratch) = nullptr;
  // weights[i] of `count` FTRL states.
  void (*ftrl_weights)(const Rule& rule, const float* state, size_t count,
                       float* weights) = nullptr;

  // The two halves of `ftrl`, for models with more terms than w·x: [z, n] of feature f is at state
  // + width·f. The first returns w·x and stores in `scratch` what the second needs; `error` is
  // the loss's, times the row's weight.
  float (*ftrl_margin)(const Rule& rule, const float* state, uint32_t width, const Row& row,
                       Scratch* scratch) = nullptr;
  void (*ftrl_step)(const Rule& rule, float* state, uint32_t width, const Row& row, float error,
                    Scratch* scratch) = nullptr;
};

// The instruction sets that this machine can run, best first: of "avx512", "avx2", "sse4", and
// always "scalar".
std::vector<std::string_view> AvailableKernels();

// Finds the functions by name; "auto" means the value of SHOAL_SIMD, else the best. InvalidArgument
// for a name that this machine cannot run.
Result<const Kernels*> ChooseKernels(std::string_view name);

}  // namespace shoal::learn::logistic
