// The arithmetic of a factorization machine's pairs (Rendle 2010, "Factorization Machines", eq. 1
// and lemma 3.1):  ½ Σ_f [(Σ_i v_if·x_i)² − Σ_i (v_if·x_i)²]  and its gradient
// ∂/∂v_if = x_i·(S_f − v_if·x_i), S_f = Σ_i v_if·x_i, followed by AdaGrad:
//   g = (p − y)·∂/∂v + λ·v;  G += g²;  v −= α·g / (β + √G)
// The linear part is logistic regression's, by FTRL-proximal (learn/logistic/kernels.h).
//
// A feature's state is [z, n, D₀…, G₀…] with a multiple of kLanes D and G: v = D + V₀, where V₀ is
// a pseudo-random function of the feature, the factor and the seed. So a state begins as zeros and
// changes by addition alone, which is what lets workers add their changes up (docs/adr/0040).
//
// One source compiled for several instruction sets (Highway), chosen at run time. Nothing here
// knows of files or servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "learn/sparse/learner.h"

namespace shoal::learn::fm {

using sparse::Row;
using sparse::Scratch;

// Factors are stored in groups of this size.
inline constexpr uint32_t kLanes = 8;
// Floats before D: [z, n].
inline constexpr uint32_t kLinearFloats = 2;

// Constant after MakeRule.
struct Rule {
  float alpha = 0.1f;
  float beta = 1;
  float l2 = 0;
  uint32_t factors = 8;         // of a feature, over all fields
  uint32_t fields = 0;          // of learn/ffm; 0: none
  uint32_t stored = 8;          // rounded up to whole groups
  std::vector<uint32_t> salts;  // [stored], of V₀
  std::vector<float> scales;    // [stored]; 0 where there is no factor

  uint32_t per_field() const { return factors / fields; }
  uint32_t width() const { return kLinearFloats + 2 * stored; }
};

// V₀ is uniform with mean 0 and standard deviation `init`.
struct RuleOptions {
  float alpha = 0.1f;
  float beta = 1;
  float l2 = 0;
  uint32_t factors = 8;
  uint32_t fields = 0;
  float init = 0.01f;
  uint64_t seed = 1;
};
Rule MakeRule(const RuleOptions& options);

// V₀ of (feature, factor).
float InitialFactor(const Rule& rule, uint32_t feature, uint32_t factor);

// A row's weights in an exchange, `stride` floats a feature, and kLanes floats more than that which
// may be read.
struct ReplayRow {
  const float* weights = nullptr;
  const float* shift = nullptr;
  size_t stride = 0;
};

// The functions for one instruction set. Static storage; thread-safe (states are read and written
// without synchronisation, as in Hogwild).
struct Kernels {
  const char* name = "";

  // The pairs' part of the margin. Stores v of the row's features, and S, in scratch->factors for
  // `step`. O(count × factors).
  float (*pairs)(const Rule& rule, const float* state, const Row& row, Scratch* scratch) = nullptr;
  // The step on v by error = p − y. Call after `pairs` of the same row.
  void (*step)(const Rule& rule, float* state, const Row& row, float error,
               Scratch* scratch) = nullptr;
  // For a replay (learn/sparse/exchange/replay.h), without fields: feature i's D lie at weights +
  // stride·i + 1, what others changed of them at `shift` likewise. Gives the pairs' part of the
  // margin, its gradient by D in `gradients`, and adds to *shifted what `shift` is of that part.
  // Null in learn/ffm.
  float (*gradients)(const Rule& rule, const ReplayRow& at, const Row& row, float* gradients,
                     float* shifted) = nullptr;
};

// The instruction sets that this machine can run, best first: of "avx512", "avx2", "sse4", and
// always "scalar".
std::vector<std::string_view> AvailableKernels();

// Finds the functions by name; "auto" means the value of SHOAL_SIMD, else the best. InvalidArgument
// for a name that this machine cannot run.
Result<const Kernels*> ChooseKernels(std::string_view name);

}  // namespace shoal::learn::fm
