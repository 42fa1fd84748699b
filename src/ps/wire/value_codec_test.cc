// Rows on the wire: stated bounds, the same bytes on every instruction set, strange numbers.
#include "ps/wire/value_codec.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace shoal::ps {
namespace {

std::string Encode(ValueType type, const std::vector<float>& row) {
  std::string bytes(WireRowBytes(type, row.size()), 'x');
  const float* rows[] = {row.data()};
  EncodeRows(type, rows, 1, row.size(), bytes.data());
  return bytes;
}

std::vector<float> Decode(ValueType type, const std::string& bytes, size_t dim) {
  std::vector<float> row(dim, -7.0f);
  float* rows[] = {row.data()};
  DecodeRows(type, bytes.data(), 1, dim, rows);
  return row;
}

std::vector<float> Through(ValueType type, const std::vector<float>& row) {
  return Decode(type, Encode(type, row), row.size());
}

void OnEveryTarget(const std::function<void()>& check) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(ValueCodec, StaysWithinItsBounds) {
  OnEveryTarget([] {
    std::mt19937 random(5);
    std::normal_distribution<float> draw(0, 1);
    for (size_t dim = 1; dim < 140; ++dim) {
      std::vector<float> row(dim);
      const float magnitude = std::pow(10.0f, static_cast<float>(dim % 60) - 30);
      float largest = 0;
      for (float& value : row) {
        value = draw(random) * magnitude;
        largest = std::max(largest, std::abs(value));
      }
      EXPECT_EQ(Through(ValueType::kF32, row), row);
      const auto half = Through(ValueType::kBf16, row);
      const auto codes = Through(ValueType::kInt8, row);
      for (size_t i = 0; i < dim; ++i) {
        ASSERT_LE(std::abs(half[i] - row[i]), std::abs(row[i]) * 0x1p-8f) << i;
        // Half a scale; the scale is at most 2^-7 above 1/127 of the largest.
        ASSERT_LE(std::abs(codes[i] - row[i]), largest / 127 * (1 + 0x1p-7f) * 0.501f) << i;
      }
    }
  });
}

TEST(ValueCodec, AllInstructionSetsWriteTheSameBytes) {
  std::mt19937 random(6);
  std::vector<std::vector<float>> rows(300);
  for (auto& row : rows) {
    row.resize(1 + random() % 70);
    // Any bits at all: NaN, infinities and denormals among them.
    for (float& value : row) {
      value = std::bit_cast<float>(static_cast<uint32_t>(random()));
      if (random() % 4 != 0 && !std::isfinite(value)) value = 1;
    }
  }
  for (const auto type : {ValueType::kBf16, ValueType::kInt8}) {
    std::vector<std::string> first;
    for (const auto& row : rows) first.push_back(Encode(type, row));
    OnEveryTarget([&] {
      for (size_t i = 0; i < rows.size(); ++i) {
        ASSERT_EQ(Encode(type, rows[i]), first[i]) << i;
        const auto values = Decode(type, first[i], rows[i].size());
        // What was sent once is exact when it is sent again as bf16.
        if (type == ValueType::kBf16) {
          ASSERT_EQ(Encode(type, values), first[i]);
        }
      }
    });
  }
}

TEST(ValueCodec, RoundsToNearestEvenAndKeepsStrangeNumbers) {
  OnEveryTarget([] {
    const float inf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float most = std::numeric_limits<float>::max();
    const std::vector<float> row = {1.0f + 0x1p-8f, 1.0f + 3 * 0x1p-8f, -0.0f, inf, -inf, nan, most,
                                    -most};
    const auto half = Through(ValueType::kBf16, row);
    EXPECT_EQ(half[0], 1.0f);
    EXPECT_EQ(half[1], 1.0f + 0x1p-6f);
    EXPECT_TRUE(half[2] == 0 && std::signbit(half[2]));
    EXPECT_EQ(half[3], inf);
    EXPECT_EQ(half[4], -inf);
    EXPECT_TRUE(std::isnan(half[5]));
    EXPECT_TRUE(std::isfinite(half[6]) && half[6] > 3e38f);
    EXPECT_TRUE(std::isfinite(half[7]) && half[7] < -3e38f);

    for (const float value : Through(ValueType::kInt8, {1, nan, 2})) EXPECT_TRUE(std::isnan(value));
    for (const float value : Through(ValueType::kInt8, {1, inf, 2})) EXPECT_TRUE(std::isnan(value));
    EXPECT_EQ(Through(ValueType::kInt8, {0, 0, 0}), std::vector<float>({0, 0, 0}));
    EXPECT_EQ(Through(ValueType::kInt8, {1e-40f, -1e-38f}), std::vector<float>({0, 0}));
    for (const float value : Through(ValueType::kInt8, {most, -most, 1})) {
      EXPECT_TRUE(std::isfinite(value));
    }
  });
}

TEST(ValueCodec, WhatRoundingLosesComesLater) {
  for (const auto type : {ValueType::kBf16, ValueType::kInt8}) {
    std::mt19937 random(7);
    std::normal_distribution<float> draw(0, 1);
    std::vector<float> residue(100, 0.0f);
    std::vector<double> wanted(100), got(100);
    for (int round = 0; round < 300; ++round) {
      for (size_t i = 0; i < residue.size(); ++i) {
        const float delta = draw(random) * (i == 0 ? 100.0f : 0.01f);
        wanted[i] += delta;
        residue[i] += delta;
      }
      const auto sent = Through(type, residue);
      for (size_t i = 0; i < residue.size(); ++i) {
        got[i] += sent[i];
        residue[i] -= sent[i];
      }
    }
    // The sums differ by what is still owed, whatever the number of rounds: half a scale.
    for (size_t i = 0; i < residue.size(); ++i) {
      EXPECT_NEAR(got[i], wanted[i], 400.0 / 127 / 2 * 1.02) << i;
      EXPECT_NEAR(got[i] + residue[i], wanted[i], 1e-2) << i;
    }
  }
}

}  // namespace
}  // namespace shoal::ps
