#include "model/factor_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/file.h"

namespace shoal::model {
namespace {

FactorModel Random(uint64_t seed) {
  std::mt19937_64 random(seed);
  FactorModel model;
  model.linear.weights.resize(random() % 200);
  model.linear.bias = 0.5f;
  model.factors = static_cast<uint32_t>(1 + random() % 9);
  if (seed % 2 == 0) model.fields = static_cast<uint32_t>(1 + random() % 5);
  model.folds_fields = seed % 4 == 0;
  const uint32_t width = model.width();
  model.v.resize(model.linear.weights.size() * width);
  for (size_t i = 0; i < model.linear.weights.size(); ++i) {
    if (random() % 3 == 0) continue;
    model.linear.weights[i] = static_cast<float>(random() % 1000) / 7 - 50;
    for (uint32_t f = 0; f < width; ++f)
      model.v[i * width + f] = static_cast<float>(random() % 100) / 9 - 5;
  }
  return model;
}

TEST(Factors, BytesGoBothWays) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const FactorModel model = Random(seed);
    FactorModel read;
    read.linear = model.linear;
    ASSERT_TRUE(DecodeFactors(EncodeFactors(model), &read).ok());
    EXPECT_EQ(read.factors, model.factors);
    EXPECT_EQ(read.fields, model.fields);
    EXPECT_EQ(read.folds_fields, model.folds_fields);
    EXPECT_EQ(read.v, model.v);
  }
}

TEST(Factors, EveryDamagedByteIsSeen) {
  for (const uint64_t seed : {7, 10}) {
    const FactorModel model = Random(seed);
    const std::string bytes = EncodeFactors(model);
    for (size_t i = 0; i < bytes.size(); ++i) {
      FactorModel read;
      read.linear = model.linear;
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
      EXPECT_FALSE(DecodeFactors(damaged, &read).ok()) << i;
      EXPECT_FALSE(DecodeFactors(bytes.substr(0, i), &read).ok()) << i;
      EXPECT_EQ(read.factors, 0u);
    }
  }
}

TEST(Factors, AreRefusedBeyondTheWeights) {
  const FactorModel model = Random(7);
  FactorModel read;
  read.linear.weights.resize(3);
  EXPECT_EQ(DecodeFactors(EncodeFactors(model), &read).message(),
            "factors.bin names more features than weights.bin");
  FactorModel bad = model;
  bad.v[0] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(DecodeFactors(EncodeFactors(bad), &bad).ok());
}

TEST(Factors, AModelIsSavedWholeAndReadBack) {
  const TempDir dir = std::move(*TempDir::Create());
  const FactorModel model = Random(3);
  const auto saved = SaveFactorModel(dir.path() / "m", model, {{"algorithm", "fm"}}, true);
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  const auto read = ReadFactorModel(dir.path() / "m");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->linear.weights, model.linear.weights);
  EXPECT_EQ(read->v, model.v);
  EXPECT_EQ(ReadModelMetadata(dir.path() / "m")->at("format").as_string(),
            "shoal-factorization-machine");
  const std::string text = ReadFile(dir.path() / "m" / "libfm.txt", 1 << 20).value();
  EXPECT_TRUE(text.starts_with("#global bias W0\n0.5\n#unary interactions Wj\n")) << text;
  // A linear model replaces it and leaves no factors.
  FactorModel linear;
  linear.linear = model.linear;
  ASSERT_TRUE(SaveFactorModel(dir.path() / "m", linear, {}, false).ok());
  EXPECT_EQ(ReadFactorModel(dir.path() / "m")->factors, 0u);
}

// The state after a save that replaces files one by one was killed.
TEST(Factors, FilesOfTwoModelsAreRefused) {
  const TempDir dir = std::move(*TempDir::Create());
  const auto path = [&](const char* model, const char* file) { return dir.path() / model / file; };
  const auto save = [&](const char* name, float bias) {
    FactorModel model = Random(3);
    model.linear.bias = bias;
    model.v[0] = bias;
    ASSERT_TRUE(SaveFactorModel(dir.path() / name, model, {}, false).ok());
  };
  for (const char* file : {"weights.bin", "factors.bin"}) {
    save("one", 1);
    save("two", 2);
    std::filesystem::copy_file(path("two", file), path("one", file),
                               std::filesystem::copy_options::overwrite_existing);
    const Status mixed = ReadFactorModel(dir.path() / "one").status();
    EXPECT_EQ(mixed.code(), Code::kDataLoss) << file;
    EXPECT_NE(mixed.message().find("holds files of two models"), std::string::npos) << file;
  }
  save("one", 1);
  std::filesystem::remove(path("one", "factors.bin"));
  EXPECT_EQ(ReadFactorModel(dir.path() / "one").status().code(), Code::kDataLoss);
}

TEST(Factors, FieldsAreSavedAndWrittenAsText) {
  const TempDir dir = std::move(*TempDir::Create());
  FactorModel model;
  model.linear.weights = {0, 0.25f};
  model.factors = 2;
  model.fields = 2;
  model.v = {0, 0, 0, 0, 1, 2, 3, -4};
  ASSERT_TRUE(SaveFactorModel(dir.path() / "m", model, {{"algorithm", "ffm"}}, true).ok());
  const auto read = ReadFactorModel(dir.path() / "m");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->fields, 2u);
  EXPECT_EQ(read->v, model.v);
  EXPECT_EQ(ReadModelMetadata(dir.path() / "m")->at("format").as_string(),
            "shoal-field-aware-factorization-machine");
  EXPECT_EQ(ReadFile(dir.path() / "m" / "xlearn.txt", 1 << 20).value(),
            "bias: 0\ni_0: 0\ni_1: 0.25\nv_1_0: 1 2\nv_1_1: 3 -4\n");
}

}  // namespace
}  // namespace shoal::model
