#include "learn/sparse/learner.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "learn/sparse/softmax_learner.h"

namespace shoal::learn::sparse {
namespace {

constexpr uint32_t kTogether = 8;  // factors

// The part of the margin that the factors [first, first + kTogether) have.
float Pairs(const model::FactorModel& model, const Row& row, uint32_t first) {
  const uint32_t n = std::min(kTogether, model.factors - first);
  std::array<float, kTogether> sums{};
  std::array<float, kTogether> squares{};
  for (uint32_t i = 0; i < row.count; ++i) {
    const float x = row.scale * (row.values == nullptr ? 1.0f : row.values[i]);
    const float* const v = model.Row(row.features[i]) + first;
    for (uint32_t f = 0; f < n; ++f) {
      const float part = v[f] * x;
      sums[f] += part;
      squares[f] += part * part;
    }
  }
  float pairs = 0;
  for (uint32_t f = 0; f < n; ++f) pairs += sums[f] * sums[f] - squares[f];
  return pairs / 2;
}

// S[f][g] = Σ v_{i,g}·x_i over the features i of field f, so that all ordered pairs together are
// Σ_{f,g} ⟨S[f][g], S[g][f]⟩; each feature with itself is taken away.
float FieldPairs(const model::FactorModel& model, const Row& row, Scratch* scratch) {
  const size_t width = model.width();
  std::vector<uint32_t>& present = scratch->places;
  present.assign(row.fields, row.fields + row.count);
  std::sort(present.begin(), present.end());
  present.erase(std::unique(present.begin(), present.end()), present.end());
  while (!present.empty() && present.back() >= model.fields) present.pop_back();
  scratch->factors.assign(present.size() * width, 0.0f);
  float both = 0;
  for (uint32_t i = 0; i < row.count; ++i) {
    const uint32_t field = row.fields[i];
    if (field >= model.fields) continue;
    const auto place = std::lower_bound(present.begin(), present.end(), field) - present.begin();
    float* const sums = scratch->factors.data() + static_cast<size_t>(place) * width;
    const float x = row.scale * (row.values == nullptr ? 1.0f : row.values[i]);
    const float* const v = model.Row(row.features[i]);
    for (size_t k = 0; k < width; ++k) sums[k] += v[k] * x;
    for (size_t k = size_t{field} * model.factors; k < (field + size_t{1}) * model.factors; ++k)
      both -= v[k] * x * (v[k] * x);
  }
  for (size_t f = 0; f < present.size(); ++f) {
    for (size_t g = 0; g < present.size(); ++g) {
      const float* const a = scratch->factors.data() + f * width + present[g] * model.factors;
      const float* const b = scratch->factors.data() + g * width + present[f] * model.factors;
      for (uint32_t k = 0; k < model.factors; ++k) both += a[k] * b[k];
    }
  }
  return both / 2;
}

float LinearMargin(const float* weights, const Row& row) {
  float sums[4] = {};
  uint32_t i = 0;
  if (row.values == nullptr) {
    for (; i + 4 <= row.count; i += 4) {
      for (uint32_t k = 0; k < 4; ++k) sums[k] += weights[row.features[i + k]];
    }
    for (; i < row.count; ++i) sums[0] += weights[row.features[i]];
  } else {
    for (; i < row.count; ++i) sums[i % 4] += weights[row.features[i]] * row.values[i];
  }
  return row.scale * (sums[0] + sums[1] + sums[2] + sums[3]);
}

}  // namespace

float Margin(const model::FactorModel& model, const Row& row, Scratch* scratch) {
  float margin = model.linear.bias + LinearMargin(model.linear.weights.data(), row);
  if (model.fields > 0)
    return row.fields == nullptr ? margin : margin + FieldPairs(model, row, scratch);
  for (uint32_t f = 0; f < model.factors; f += kTogether) margin += Pairs(model, row, f);
  return margin;
}

void ClassMargins(const model::FactorModel& model, const Row& row, Scratch* scratch,
                  float* margins) {
  const auto classes = static_cast<uint32_t>(model.linear.classes());
  std::copy_n(model.linear.biases.begin(), classes, margins);
  if (model.factors == 0) {
    for (uint32_t i = 0; i < row.count; ++i) {
      const float* const weights = model.linear.weights.data() + size_t{row.features[i]} * classes;
      const float x = ValueAt(row, i);
      for (uint32_t c = 0; c < classes; ++c) margins[c] += weights[c] * x;
    }
    return;
  }
  if (scratch->parts.empty()) scratch->parts.resize(1);
  for (uint32_t c = 0; c < classes; ++c) {
    const Row of_class = ClassRow(row, classes, c, &scratch->places);
    margins[c] += Margin(model, of_class, &scratch->parts[0]);  // whose own bias is 0
  }
}

float UnitScale(const float* values, size_t count) {
  double sum = static_cast<double>(count);
  if (values != nullptr) {
    sum = 0;
    for (size_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  }
  const auto scale = static_cast<float>(1 / std::sqrt(sum));
  return std::isfinite(scale) ? scale : 1.0f;
}

}  // namespace shoal::learn::sparse
