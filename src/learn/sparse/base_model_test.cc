// Trainings that continue a saved model, in one process.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "learn/algorithm.h"
#include "learn/sparse/base_model.h"
#include "learn/sparse/test_sparse_job.h"

namespace shoal::learn::sparse {
namespace {

using testing::HasSubstr;

// Two numbers of very different scale and a town; of the second kind, shifted.
std::string TableOf(int count, uint64_t seed, double shift, const char* label) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::string text = "y,a,b,town\n";
  for (int i = 0; i < count; ++i) {
    const double a = normal(random), b = normal(random);
    const uint64_t town = random() % 3;
    const double sum = a - 0.5 * b + (town == 1 ? 1 : 0) + 0.3 * normal(random);
    const std::string y = label == std::string("number") ? fmt::format("{}", 5e4 + 1e3 * sum)
                          : label == std::string("two")  ? (sum > 0.3 ? "yes" : "no")
                          : sum > 0.8                    ? "high"
                          : sum > -0.3                   ? "middle"
                                                         : "low";
    text += fmt::format("{},{},{},town{}\n", y, 1e3 * a + shift, b + 50, town);
  }
  return text;
}

class ContinuedJob : public SparseJob {
 protected:
  void UseTable(const char* label, const char* loss) {
    format_ = data::ExampleFormat::kCsv;
    params_.label = "y";
    params_.loss = loss;
    params_.hash_bits = 10;
    params_.threads = 1;
    Write(1, 0, label);
    ASSERT_TRUE(WriteFileAtomically(test_, TableOf(800, 3, 0, label)).ok());
  }
  void Write(uint64_t seed, double shift, const char* label, int count = 2000) {
    ASSERT_TRUE(WriteFileAtomically(train_, TableOf(count, seed, shift, label)).ok());
  }
  WorkerOutcome Train(int epochs, int workers, const char* output) {
    params_.epochs = epochs;
    const auto outcomes = Run(1, workers, output);
    for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.ok()) << outcome.status().message();
    return outcomes[0].ok() ? *outcomes[0] : WorkerOutcome();
  }
  model::FactorModel Read(const char* name) {
    return model::ReadFactorModel(dir_.path() / name).value();
  }
  std::string Error(int workers = 1) {
    const auto outcomes = Run(1, workers, "next");
    return outcomes[0].status().message();
  }
};

void ExpectNear(const model::FactorModel& a, const model::FactorModel& b) {
  ASSERT_EQ(a.linear.weights.size(), b.linear.weights.size());
  EXPECT_NEAR(a.linear.bias, b.linear.bias, 1e-4);
  for (size_t i = 0; i < a.linear.weights.size(); ++i) {
    if (a.linear.weights[i] == 0 && b.linear.weights[i] == 0) continue;
    EXPECT_NEAR(a.linear.weights[i], b.linear.weights[i], 2e-4) << i;
  }
  ASSERT_EQ(a.v.size(), b.v.size());
  for (size_t i = 0; i < a.v.size(); ++i) {
    if (a.v[i] == b.v[i]) continue;
    EXPECT_NEAR(a.v[i], b.v[i], 2e-4) << i;
  }
}

TEST_F(ContinuedJob, TwoTrainingsAreAsOne) {
  for (const auto& [label, loss] :
       {std::pair{"two", "logistic"}, {"number", "squared"}, {"three", "softmax"}}) {
    for (const bool factorize : {false, true}) {
      for (const double l1 : {0.0, 0.5}) {
        SCOPED_TRACE(fmt::format("{} {} {}", loss, factorize, l1));
        UseTable(label, loss);
        factorize_ = factorize;
        linear_.l1 = fm_.l1 = l1;
        Train(5, 1, "whole");
        Train(2, 1, "half");
        from_ = "half";
        Train(3, 1, "both");
        from_.clear();
        ExpectNear(Read("both"), Read("whole"));
      }
    }
  }
}

TEST_F(ContinuedJob, AdagradContinuesToo) {
  UseTable("two", "logistic");
  linear_.optimizer = "adagrad";
  Train(5, 1, "whole");
  Train(2, 1, "half");
  from_ = "half";
  Train(3, 1, "both");
  ExpectNear(Read("both"), Read("whole"));
}

TEST_F(ContinuedJob, FieldsContinueToo) {
  format_ = data::ExampleFormat::kLibffm;
  by_field_ = true;
  params_.threads = 1;
  ASSERT_TRUE(WriteFileAtomically(train_, PlantedFields(2, 3000)).ok());
  ASSERT_TRUE(WriteFileAtomically(test_, PlantedFields(3, 1000)).ok());
  Train(4, 1, "whole");
  Train(2, 1, "half");
  from_ = "half";
  Train(2, 1, "both");
  ExpectNear(Read("both"), Read("whole"));
  ASSERT_TRUE(WriteFileAtomically(train_, PlantedFields(2, 3000) + "1 7:1:1\n").ok());
  EXPECT_THAT(Error(), HasSubstr("fields up to 7, expected less than 3"));
}

TEST_F(ContinuedJob, SeveralWorkersBeginWithTheModel) {
  for (const auto& [label, loss] : {std::pair{"two", "logistic"}, {"three", "softmax"}}) {
    for (const bool factorize : {false, true}) {
      for (const bool deterministic : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} {}", loss, factorize, deterministic));
        UseTable(label, loss);
        factorize_ = factorize;
        Train(8, 1, "first");
        const double first = PredictTest("first")->quality->loss;
        // A handful of new examples leaves the model about what it was.
        Write(9, 0, label, 40);
        from_ = "first";
        params_.deterministic = deterministic;
        for (const int workers : {2, 3}) {
          const WorkerOutcome next = Train(1, workers, "next");
          EXPECT_LT(next.held_out.loss, 1.1 * first) << workers;
        }
        from_.clear();
        params_.deterministic = false;
      }
    }
  }
}

TEST_F(ContinuedJob, ColumnsKeepTheirScales) {
  UseTable("number", "squared");
  Train(10, 1, "first");
  const Quality first = *PredictTest("first")->quality;
  // Data from elsewhere, whose own mean and deviation would be others.
  ASSERT_TRUE(WriteFileAtomically(train_, TableOf(200, 7, 0, "number")).ok());
  from_ = "first";
  Train(1, 1, "first");  // in place
  EXPECT_LT(PredictTest("first")->quality->rmse, 1.1 * first.rmse);
  const json::object metadata = model::ReadModelMetadata(dir_.path() / "first").value();
  EXPECT_EQ(metadata.at("from").at("epochs"), 10);
  const BaseModel base = ReadBaseModel((dir_.path() / "first").string()).value();
  EXPECT_EQ(base.epochs, 11u);
}

TEST_F(ContinuedJob, ValidationAndCheckpoints) {
  UseTable("two", "logistic");
  Train(3, 1, "first");
  const double first = PredictTest("first")->quality->loss;
  from_ = "first";
  params_.validation = "20%";
  checkpoints_ = true;
  for (const int workers : {1, 2}) {
    const WorkerOutcome outcome = Train(30, workers, "next");
    EXPECT_GT(outcome.best_epoch, 0u);
    EXPECT_LT(outcome.held_out.loss, 1.05 * first);
    from_ = "next";  // whose best epoch has its optimizer state
  }
}

TEST_F(ContinuedJob, NewFeaturesAreLearnt) {
  params_.threads = 1;
  Train(2, 1, "first");
  std::string more = PlantedLines(2, 3000);
  for (int i = 0; i < 500; ++i) more += i % 2 == 0 ? "1 999:1\n" : "-1 998:1\n";
  ASSERT_TRUE(WriteFileAtomically(train_, more).ok());
  from_ = "first";
  Train(2, 1, "next");
  const model::FactorModel model = Read("next");
  ASSERT_GE(model.linear.weights.size(), 1000u);
  EXPECT_GT(model.linear.weights[999], 1);
  EXPECT_LT(model.linear.weights[998], -1);
}

TEST_F(ContinuedJob, DataOfOtherColumnsOrClassesIsRefused) {
  UseTable("three", "softmax");
  Train(2, 1, "first");
  from_ = "first";
  ASSERT_TRUE(WriteFileAtomically(train_, "y,a,b\nlow,1,2\nhigh,2,3\n").ok());
  EXPECT_THAT(Error(), HasSubstr("there is no column town, which the model"));
  ASSERT_TRUE(WriteFileAtomically(train_, "y,a,b,town,c\nlow,1,2,x,1\nhigh,2,3,y,2\n").ok());
  EXPECT_THAT(Error(), HasSubstr("got a column c, which the model"));
  ASSERT_TRUE(WriteFileAtomically(train_, "y,a,b,town\nlow,1,2,x\nother,2,3,y\n").ok());
  EXPECT_THAT(Error(), HasSubstr("other"));
  // Another order of columns is the same data.
  ASSERT_TRUE(WriteFileAtomically(train_, "town,b,y,a\ntown1,50,low,1\ntown1,51,high,2\n").ok());
  EXPECT_EQ(Error(), "");
}

TEST_F(ContinuedJob, AModelWithoutItsOptimizerIsRefused) {
  UseTable("two", "logistic");
  params_.keep_optimizer = false;
  Train(2, 1, "first");
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "first" / "optimizer.bin"));
  from_ = "first";
  EXPECT_THAT(Error(), HasSubstr("was saved without optimizer.bin"));
  from_ = "nothing";
  EXPECT_THAT(Error(), HasSubstr("there is no model in"));
}

TEST_F(ContinuedJob, DamagedStatesAreRefused) {
  UseTable("two", "logistic");
  factorize_ = true;
  Train(1, 1, "first");
  model::FactorModel model = Read("first");
  const auto path = dir_.path() / "first" / "optimizer.bin";
  const std::string bytes = ReadFile(path, 1 << 26).value();
  ASSERT_TRUE(model::DecodeOptimizerState(bytes, &model).ok());
  EXPECT_EQ(model::EncodeOptimizerState(model), bytes);
  for (size_t i = 0; i < bytes.size(); i += 1 + bytes.size() / 500) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x41);
    EXPECT_FALSE(model::DecodeOptimizerState(damaged, &model).ok()) << i;
    EXPECT_FALSE(model::DecodeOptimizerState(bytes.substr(0, i), &model).ok()) << i;
  }
  model::FactorModel linear = model;
  linear.factors = 0;
  EXPECT_FALSE(model::DecodeOptimizerState(bytes, &linear).ok());
}

// Parameters that are given beside a model.
class ContinuedParams : public testing::Test {
 protected:
  static Result<LearnValues> Continue(const std::string& name, const std::string& value,
                                      const char* algorithm = "fm") {
    const json::object metadata = ParseJsonObject(R"({"algorithm":"fm","weights":{"hash_bits":22},
          "parameters":{"factors":"16","alpha":"0.5","loss":"softmax","normalize":"auto",
                        "label":"3","epochs":"7","seed":"4","hash_bits":"0","bias":"true"},
          "data":{"format":"csv","columns":{"header":true,"label":"y","names":["a","b","y"],
                                            "categorical":[]}}})")
                                      .value();
    LearnValues learn{{"algorithm", {algorithm, 0, 0}}, {"from", {"model", 0, 0}}};
    if (!name.empty()) learn[name] = {value, 3, 7};
    return ContinueLearn(FindAlgorithm("fm")->params, learn, "job.yaml", algorithm, metadata);
  }
};

TEST_F(ContinuedParams, AreTheModelsUnlessGiven) {
  const LearnValues all = Continue("alpha", "0.1").value();
  EXPECT_EQ(all.at("factors").text, "16");
  EXPECT_EQ(all.at("loss").text, "softmax");
  EXPECT_EQ(all.at("alpha").text, "0.1");
  EXPECT_FALSE(all.contains("epochs"));
  EXPECT_FALSE(all.contains("seed"));
}

TEST_F(ContinuedParams, ThatNeedAnotherModelAreNamed) {
  EXPECT_EQ(Continue("factors", "8").status().message(),
            "job.yaml:3:7: learn.factors: got 8, expected 16 as in the model model that is "
            "continued; leave it out, or train a new model without --from");
  EXPECT_THAT(Continue("loss", "squared").status().message(), HasSubstr("expected softmax"));
  EXPECT_THAT(Continue("label", "b").status().message(), HasSubstr("got b, expected y"));
  EXPECT_THAT(Continue("normalize", "none").status().message(), HasSubstr("normalize: got none"));
  EXPECT_THAT(Continue("hash_bits", "18").status().message(), HasSubstr("expected 22"));
  EXPECT_THAT(Continue("", "", "linear").status().message(),
              HasSubstr("was trained by fm, expected a model of linear"));
  for (const auto& [name, same] : {std::pair{"label", "y"},
                                   {"label", "3"},
                                   {"normalize", "columns"},
                                   {"hash_bits", "22"},
                                   {"factors", "16"},
                                   {"loss", "auto"},
                                   {"bias", "yes"}})
    EXPECT_TRUE(Continue(name, same).ok()) << name << same;
}

}  // namespace
}  // namespace shoal::learn::sparse
