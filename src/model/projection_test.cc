#include "model/projection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace shoal::model {
namespace {

TEST(ProjectionTest, FindsTheDirectionsOfLargestVariance) {
  // Along (3, 4, 0, …)/5 with deviation 10, along the last axis with 3, else 0.1.
  constexpr uint64_t kDim = 20;
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::vector<float> rows;
  std::vector<double> first, second;
  for (int i = 0; i < 500; ++i) {
    const double a = 10 * normal(random), b = 3 * normal(random);
    first.push_back(a);
    second.push_back(b);
    for (uint64_t j = 0; j < kDim; ++j) {
      const double along = j == 0 ? 0.6 * a : j == 1 ? 0.8 * a : j == kDim - 1 ? b : 0;
      rows.push_back(static_cast<float>(7 + along + 0.1 * normal(random)));
    }
  }
  const auto made = PrincipalPlane(rows, kDim);
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made->points.size(), 1000U);
  double mean_a = 0, mean_b = 0;
  for (size_t i = 0; i < 500; ++i) {
    mean_a += first[i] / 500;
    mean_b += second[i] / 500;
  }
  for (size_t i = 0; i < 500; ++i) {
    EXPECT_NEAR(made->points[2 * i], first[i] - mean_a, 1);
    EXPECT_NEAR(made->points[2 * i + 1], second[i] - mean_b, 1);
  }
  EXPECT_GT(made->shares[0], 0.85);
  EXPECT_GT(made->shares[1], 0.05);
  EXPECT_LE(made->shares[0] + made->shares[1], 1.0001);
  const auto again = PrincipalPlane(rows, kDim);
  EXPECT_EQ(again->points, made->points);
}

TEST(ProjectionTest, TakesWhatHasNoPlane) {
  EXPECT_FALSE(PrincipalPlane(std::vector<float>{1, 2}, 1).ok());
  EXPECT_FALSE(PrincipalPlane({}, 0).ok());
  const std::vector<float> same(30, 2.5F);
  const auto flat = PrincipalPlane(same, 3);
  ASSERT_TRUE(flat.ok());
  for (const double one : flat->points) EXPECT_EQ(one, 0);
  std::vector<float> broken(30, 1);
  broken[4] = NAN;
  broken[5] = INFINITY;
  const auto finite = PrincipalPlane(broken, 3);
  ASSERT_TRUE(finite.ok());
  for (const double one : finite->points) EXPECT_TRUE(std::isfinite(one));
  const auto line = PrincipalPlane(std::vector<float>{1, 2, 3, 4, 5}, 1);
  ASSERT_TRUE(line.ok());
  EXPECT_NEAR(line->shares[0], 1, 1e-9);
  EXPECT_NEAR(line->shares[1], 0, 1e-9);
}

}  // namespace
}  // namespace shoal::model
