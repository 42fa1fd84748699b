// Random sparse examples, for the tests of the kernels.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "learn/sparse/learner.h"

namespace shoal::learn::sparse {

struct Example {
  std::vector<uint32_t> features;
  std::vector<float> values;     // empty: ones
  std::vector<uint16_t> fields;  // empty: none

  // Of unit length; points into the example.
  Row row() const {
    const float* const data = values.empty() ? nullptr : values.data();
    return {features.data(), data, static_cast<uint32_t>(features.size()),
            UnitScale(data, features.size()), fields.empty() ? nullptr : fields.data()};
  }
};

// Of the features below `count`: from every one down to one in 40; values are ones, or normal.
inline Example RandomExample(std::mt19937_64& random, uint32_t count) {
  Example example;
  const bool ones = random() % 2 == 0;
  const uint64_t one_in = 1 + random() % 40;
  std::normal_distribution<float> normal;
  for (uint32_t f = 0; f < count; ++f) {
    if (random() % one_in != 0) continue;
    example.features.push_back(f);
    if (!ones) example.values.push_back(normal(random));
  }
  return example;
}

// Of a margin, by its definition.
inline double LogLoss(double margin, float label) {
  return std::log1p(std::exp(label > 0 ? -margin : margin));
}

}  // namespace shoal::learn::sparse
