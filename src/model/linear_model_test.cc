#include "model/linear_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/bytes.h"
#include "base/file.h"

namespace shoal::model {
namespace {

using ::testing::HasSubstr;

LinearModel RandomModel(uint64_t seed) {
  std::mt19937_64 random(seed);
  LinearModel model;
  model.weights.resize(random() % 2000);
  for (float& w : model.weights)
    w = random() % 3 == 0 ? 0 : std::normal_distribution<float>()(random);
  model.bias = 0.25f;
  model.hash_bits = static_cast<uint32_t>(random() % 32);
  model.normalize = random() % 2 == 0;
  return model;
}

TEST(LinearModel, BytesGoBothWays) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const LinearModel model = RandomModel(seed);
    const auto read = DecodeLinearModel(EncodeLinearModel(model));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->weights, model.weights);
    EXPECT_EQ(read->bias, model.bias);
    EXPECT_EQ(read->hash_bits, model.hash_bits);
    EXPECT_EQ(read->normalize, model.normalize);
  }
}

TEST(LinearModel, SeveralClassesHaveABiasEach) {
  LinearModel model;
  model.weights = {0, 1, -2, 0, 3, 4};
  model.biases = {0.5f, -1, 2};
  EXPECT_EQ(model.features(), 2u);
  const std::string bytes = EncodeLinearModel(model);
  const auto read = DecodeLinearModel(bytes);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->weights, model.weights);
  EXPECT_EQ(read->biases, model.biases);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(DecodeLinearModel(bytes.substr(0, size)).ok()) << size;
  model.weights.resize(5);
  EXPECT_EQ(DecodeLinearModel(EncodeLinearModel(model)).status().message(),
            "weights.bin has not as many weights for each class");
}

TEST(LinearModel, EveryDamageIsFound) {
  LinearModel model;
  model.weights = {0, 1, -2, 0, 3};
  const std::string bytes = EncodeLinearModel(model);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(DecodeLinearModel(bytes.substr(0, size)).ok()) << size;
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_FALSE(DecodeLinearModel(damaged).ok()) << at;
  }
  EXPECT_FALSE(DecodeLinearModel(bytes + "x").ok());
}

TEST(LinearModel, AClaimedSizeIsNotBelieved) {
  std::string bytes = EncodeLinearModel({});
  const uint64_t end = kMaxLinearWeights;
  std::memcpy(bytes.data() + 24, &end, sizeof end);
  const uint32_t sum = Crc32c(bytes.data(), bytes.size() - 4);
  std::memcpy(bytes.data() + bytes.size() - 4, &sum, 4);
  const auto read = DecodeLinearModel(bytes);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.status().message(), HasSubstr("far beyond"));
}

TEST(LinearModel, ADivergedOneIsRefusedAndTheOldOneStays) {
  const TempDir dir = TempDir::Create().value();
  const auto path = dir.path() / "model";
  LinearModel model;
  model.weights = {0, 1};
  ASSERT_TRUE(SaveLinearModel(path, model, {}, false).ok());
  for (const float wrong : {std::nanf(""), INFINITY}) {
    LinearModel diverged = model;
    diverged.weights[1] = wrong;
    EXPECT_EQ(SaveLinearModel(path, diverged, {}, false).status().code(),
              Code::kFailedPrecondition);
    diverged = model;
    diverged.bias = wrong;
    EXPECT_FALSE(SaveLinearModel(path, diverged, {}, false).ok());
  }
  EXPECT_EQ(ReadLinearModel(path)->weights, model.weights);
}

// As with `--hash-bits 29`: few of the possible features exist.
TEST(LinearModel, FewWeightsOfManyFeaturesAreReadAgain) {
  LinearModel model;
  model.weights = ZeroedFloats(kMaxUnbackedWeights + 12345);
  model.weights.front() = 1;
  model.weights.back() = -2;
  const TempDir dir = TempDir::Create().value();
  ASSERT_TRUE(SaveLinearModel(dir.path() / "model", model, {}, false).ok());
  const auto read = ReadLinearModel(dir.path() / "model");
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->weights.size(), model.weights.size());
  EXPECT_EQ(read->weights.front(), 1);
  EXPECT_EQ(read->weights.back(), -2);
}

TEST(LinearModel, IsSavedWholeAndReplacesAModelOfAnyKind) {
  const TempDir dir = TempDir::Create().value();
  const auto path = dir.path() / "model";
  LinearModel model;
  model.weights = {0, 1, -2.5f};
  for (const bool text : {true, false}) {
    const auto saved = SaveLinearModel(path, model, {{"algorithm", "test"}}, text);
    ASSERT_TRUE(saved.ok()) << saved.status().message();
    EXPECT_EQ(saved->digest, DigestOf(path / "weights.bin").value_or("none"));
    EXPECT_EQ(std::filesystem::exists(path / "weights.txt"), text);
    if (text) {
      EXPECT_EQ(ReadFile(path / "weights.txt", 1000).value(), "bias 0\n1 1\n2 -2.5\n");
    }
    EXPECT_EQ(ReadLinearModel(path)->weights, model.weights);
    EXPECT_EQ(ReadLinearModel(path / "weights.bin")->weights, model.weights);
    EXPECT_EQ(ReadModelMetadata(path)->at("algorithm").as_string(), "test");
  }
  EXPECT_EQ(ReadLinearModel(dir.path() / "none").status().code(), Code::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(path / "weights.bin", "SHOALLIN nonsense").ok());
  EXPECT_THAT(ReadLinearModel(path).status().message(), HasSubstr("weights.bin: weights.bin is"));
}

}  // namespace
}  // namespace shoal::model
