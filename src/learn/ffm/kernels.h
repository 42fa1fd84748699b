// The arithmetic of a field-aware factorization machine's pairs (Juan, Zhuang, Chin, Lin 2016,
// "Field-aware Factorization Machines for CTR Prediction", eq. 4 and Algorithm 1):
//   Σ_{i<j} ⟨v_{i,f(j)}, v_{j,f(i)}⟩·x_i·x_j,   f(i) the field of feature i,
//   ∂/∂v_{i,f} = x_i·Σ_{j≠i of field f} v_{j,f(i)}·x_j
// followed by AdaGrad for the vectors that were in a pair:
//   g = (p − y)·∂/∂v + λ·v;  G += g²;  v −= α·g / (β + √G)
//
// State, V₀ and the linear part are those of learn/fm: a feature's factors are its vectors one
// after another, k = rule.per_field() floats for each of rule.fields fields. The functions are of
// fm::Kernels too; rows have fields, all below rule.fields.
//
// The vector code sums up by field first: S[f][g] = Σ_{i of field f} v_{i,g}·x_i. All ordered pairs
// are then Σ_{f,g} ⟨S[f][g], S[g][f]⟩ less each feature with itself, and the gradient of v_{i,g} is
// x_i·S[g][f(i)], for g = f(i) less the feature's own part. That is O(count × fields of the row ×
// k) in place of O(count² × k), over memory that lies in order.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "learn/fm/kernels.h"

namespace shoal::learn::ffm {

using fm::Kernels;
using fm::Rule;
using sparse::Row;
using sparse::Scratch;

// As in learn/fm.
std::vector<std::string_view> AvailableKernels();
Result<const Kernels*> ChooseKernels(std::string_view name);

}  // namespace shoal::learn::ffm
