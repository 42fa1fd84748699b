#include "learn/word2vec/kernels/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "learn/word2vec/kernels/kernels_scalar.h"
#include "learn/word2vec/kernels/matrix.h"
#include "learn/word2vec/trainer/sampler.h"

namespace shoal::learn::word2vec {
namespace {

// One block with rows, weights and scratch of its own; a copy trains independently.
struct Problem {
  Problem(uint32_t m_in, uint32_t n_in, size_t dim, uint64_t seed, bool weighted)
      : m(m_in), n(n_in), rows(*Matrix::Make(m + n, dim)), scratch(*Matrix::Make(1, 8192)) {
    Random random = Random::Of(seed, 1);
    for (uint32_t r = 0; r < m + n; ++r) {
      for (size_t k = 0; k < dim; ++k) rows.row(r)[k] = random.Unit() - 0.5f;
    }
    for (uint32_t i = 0; i < m; ++i)
      weights.push_back(weighted ? static_cast<float>(1 + random.Below(3)) : 1.0f);
    for (uint32_t i = 0; i < m; ++i) contexts.push_back(rows.row(i));
    for (uint32_t i = 0; i < n; ++i) outputs.push_back(rows.row(m + i));
  }
  Block MakeBlock(float alpha, bool weighted) {
    Block block;
    block.contexts = contexts.data();
    block.weights = weighted ? weights.data() : nullptr;
    block.outputs = outputs.data();
    block.labels = labels.empty() ? nullptr : labels.data();
    block.m = m;
    block.n = n;
    block.stride = static_cast<uint32_t>(rows.stride());
    block.alpha = alpha;
    block.gradients = scratch.row(0);
    return block;
  }
  // Σ w log σ(±x·y), in double.
  double Objective() const {
    double sum = 0;
    for (uint32_t i = 0; i < m; ++i) {
      for (uint32_t j = 0; j < n; ++j) {
        double dot = 0;
        for (size_t k = 0; k < rows.dim(); ++k)
          dot += static_cast<double>(contexts[i][k]) * outputs[j][k];
        const bool yes = labels.empty() ? j == 0 : labels[j] == 1;
        sum -= weights[i] * std::log1p(std::exp(yes ? -dot : dot));
      }
    }
    return sum;
  }

  uint32_t m, n;
  Matrix rows, scratch;
  // As on the path of a word in hierarchical softmax.
  void LabelAtRandom(uint64_t seed) {
    Random random = Random::Of(seed, 2);
    for (uint32_t i = 0; i < n; ++i) labels.push_back(static_cast<float>(random.Below(2)));
  }

  std::vector<float> weights, labels;
  std::vector<float*> contexts, outputs;
};

const Kernels& Named(std::string_view name) { return **ChooseKernels(name); }

class EachKernel : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(
    Simd, EachKernel,
    [] {
      std::vector<std::string> names;
      for (std::string_view name : AvailableKernels()) names.emplace_back(name);
      return testing::ValuesIn(names);
    }(),
    [](const auto& which) { return which.param; });

TEST_P(EachKernel, GradientIsThatOfTheObjective) {
  for (const bool weighted : {false, true}) {
    for (const size_t dim : {20u, 100u}) {
      Problem before(7, 6, dim, 11, weighted);
      Problem after(7, 6, dim, 11, weighted);
      if (dim == 20) {
        before.LabelAtRandom(3);
        after.LabelAtRandom(3);
      }
      const float alpha = 1e-2f;
      Named(GetParam()).skipgram(after.MakeBlock(alpha, weighted));
      for (uint32_t r = 0; r < before.m + before.n; r += 3) {
        for (size_t k = 0; k < dim; k += 7) {
          const float step = 1e-2f;
          const float value = before.rows.row(r)[k];
          before.rows.row(r)[k] = value + step;
          const double up = before.Objective();
          before.rows.row(r)[k] = value - step;
          const double down = before.Objective();
          before.rows.row(r)[k] = value;
          const double slope = (up - down) / (2 * step);
          EXPECT_NEAR((after.rows.row(r)[k] - value) / alpha, slope, 2e-3)
              << "row " << r << " element " << k;
        }
      }
    }
  }
}

TEST_P(EachKernel, AgreesWithScalar) {
  for (const size_t dim : {1u, 16u, 50u, 100u, 300u}) {
    for (const uint32_t m : {1u, 2u, 3u, 4u, 5u, 8u, 10u, 13u}) {
      for (const uint32_t n : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 11u, 21u}) {
        Problem expected(m, n, dim, dim * 1000 + m * 10 + n, true);
        Problem got(m, n, dim, dim * 1000 + m * 10 + n, true);
        if ((m + n) % 2 == 0) {
          expected.LabelAtRandom(m);
          got.LabelAtRandom(m);
        }
        ScalarKernels()->skipgram(expected.MakeBlock(0.05f, true));
        Named(GetParam()).skipgram(got.MakeBlock(0.05f, true));
        // Other orders of addition: a few units in the last place of the largest terms.
        const float bound = 4e-6f * static_cast<float>(n);
        for (uint32_t r = 0; r < m + n; ++r) {
          for (size_t k = 0; k < got.rows.stride(); ++k)
            ASSERT_NEAR(got.rows.row(r)[k], expected.rows.row(r)[k], bound)
                << "dim " << dim << " m " << m << " n " << n << " row " << r;
        }
      }
    }
  }
}

TEST_P(EachKernel, CbowAgreesWithScalarAndMovesAllContextsAlike) {
  Problem before(9, 6, 100, 5, true);
  Problem expected(9, 6, 100, 5, true);
  Problem got(9, 6, 100, 5, true);
  Matrix mean = *Matrix::Make(2, 100);
  ScalarKernels()->cbow(expected.MakeBlock(0.05f, true), mean.row(0));
  Named(GetParam()).cbow(got.MakeBlock(0.05f, true), mean.row(0));
  for (uint32_t r = 0; r < 15; ++r) {
    for (size_t k = 0; k < 100; ++k)
      ASSERT_NEAR(got.rows.row(r)[k], expected.rows.row(r)[k], 4e-6f);
  }
  for (size_t k = 0; k < 100; ++k) {
    const float step = (got.rows.row(0)[k] - before.rows.row(0)[k]) / got.weights[0];
    for (uint32_t r = 1; r < 9; ++r) {
      EXPECT_NEAR((got.rows.row(r)[k] - before.rows.row(r)[k]) / got.weights[r], step, 1e-6f);
    }
  }
}

TEST_P(EachKernel, SigmoidIsWithinUlpsOfTheTrueOne) {
  constexpr size_t kSize = 16 * 1024;
  Matrix in = *Matrix::Make(1, kSize);
  Matrix out = *Matrix::Make(1, kSize);
  for (size_t i = 0; i < kSize; ++i)
    in.row(0)[i] = -29.5f + 59.0f * static_cast<float>(i) / static_cast<float>(kSize);
  Named(GetParam()).sigmoid(in.row(0), out.row(0), kSize);
  for (size_t i = 0; i < kSize; ++i) {
    const double x = in.row(0)[i];
    const double exact = 1 / (1 + std::exp(-x));
    // 48 ulp: the polynomial's 3e-7 and the rounding of x·log₂e, which grows with |x|.
    EXPECT_NEAR(out.row(0)[i], exact, exact * 48 * 0x1p-23) << "x " << x;
  }
  in.row(0)[0] = 1e9f;
  in.row(0)[1] = -1e9f;
  Named(GetParam()).sigmoid(in.row(0), out.row(0), 16);
  EXPECT_EQ(out.row(0)[0], 1.0f);
  EXPECT_LT(out.row(0)[1], 1e-12f);
}

TEST_P(EachKernel, ExchangeKeepsWhatWasTrainedMeanwhile) {
  const Kernels& kernels = Named(GetParam());
  constexpr size_t kSize = 112;
  Matrix m = *Matrix::Make(5, kSize);
  float* const local = m.row(0);
  float* const base = m.row(1);
  float* const delta = m.row(2);
  float* const server = m.row(3);
  for (size_t k = 0; k < kSize; ++k) {
    base[k] = 1;
    local[k] = 1.5f;
  }
  EXPECT_EQ(kernels.subtract(local, base, delta, kSize), 0.25f * kSize);
  for (size_t k = 0; k < kSize; ++k) {
    ASSERT_EQ(delta[k], 0.5f);
    server[k] = 4 + delta[k];  // others moved it by 3
    local[k] += 0.25f;         // trained while the request was under way
  }
  EXPECT_EQ(kernels.absorb(local, base, delta, server, kSize), 4.5f * 4.5f * kSize);
  for (size_t k = 0; k < kSize; ++k) {
    EXPECT_EQ(base[k], 4.5f);
    EXPECT_EQ(local[k], 4.75f);
  }
}

TEST_P(EachKernel, CopiesThatMetAreCombined) {
  const Kernels& kernels = Named(GetParam());
  constexpr size_t kSize = 112;
  Matrix m = *Matrix::Make(3, kSize);
  float* const copy = m.row(0);
  float* const base = m.row(1);
  float* const shared = m.row(2);
  float per_reach = 1e9f;  // movements count as long
  const auto meet = [&](float own, float others, bool alike) {
    for (size_t k = 0; k < kSize; ++k) {
      base[k] = 1;
      copy[k] = 1 + own;
      shared[k] = 1 + (alike || k % 2 == 0 ? others : -others);
    }
    float length = 0;
    const float told = kernels.merge(copy, base, shared, kSize, per_reach);
    for (size_t k = 0; k < kSize; ++k) length += copy[k] * copy[k];
    EXPECT_NEAR(told, length, 1e-5f * length);
    for (size_t k = 0; k < kSize; ++k) {
      ASSERT_EQ(copy[k], shared[k]);
      ASSERT_EQ(base[k], shared[k]);
    }
  };
  meet(0.5f, 0, true);  // only the copy has moved
  EXPECT_EQ(shared[7], 1.5f);
  meet(0, 0.5f, true);
  EXPECT_EQ(shared[7], 1.5f);
  meet(0, 0, true);
  EXPECT_EQ(shared[7], 1.0f);
  meet(0.5f, 0.5f, true);  // alike: the mean
  EXPECT_NEAR(shared[7], 1.5f, 1e-6f);
  meet(0.5f, 0.25f, true);  // the same way: the longer
  EXPECT_NEAR(shared[7], 1.5f, 1e-6f);
  meet(0.25f, 0.5f, true);
  EXPECT_NEAR(shared[7], 1.5f, 1e-6f);
  meet(0.25f, -0.75f, true);  // against each other: the sum
  EXPECT_NEAR(shared[7], 0.5f, 1e-6f);
  per_reach = 0;  // short movements: the sum
  meet(0.5f, 0.25f, true);
  EXPECT_NEAR(shared[7], 1.75f, 1e-6f);
  per_reach = 1 / (1.5f * std::sqrt(static_cast<float>(kSize)));  // two thirds of the way
  meet(0.5f, 0.5f, true);
  EXPECT_NEAR(shared[7], 2 - 0.5f / 1.5f, 1e-6f);
  per_reach = 1e9f;
  meet(0.5f, 0.5f, false);  // at right angles: the sum
  EXPECT_NEAR(shared[6], 2.0f, 1e-6f);
  EXPECT_NEAR(shared[7], 1.0f, 1e-6f);
}

TEST(Kernels, UnknownNamesListTheKnownOnes) {
  const auto kernels = ChooseKernels("mmx");
  ASSERT_FALSE(kernels.ok());
  EXPECT_NE(kernels.status().message().find("got mmx"), std::string::npos);
  EXPECT_NE(kernels.status().message().find("scalar"), std::string::npos);
}

}  // namespace
}  // namespace shoal::learn::word2vec
