// Whole trainings of every loss in one process.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "learn/sparse/test_sparse_job.h"
#include "learn/sparse/training.h"

namespace shoal::learn::sparse {
namespace {

using testing::HasSubstr;

// A table with a column of noise, one of classes and labels by `label` of the planted sum.
template <typename Label>
std::string Table(int count, uint64_t seed, const Label& label) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::string text = "y,id,a,b,town,w\n";
  for (int i = 0; i < count; ++i) {
    const double a = normal(random), b = normal(random);
    const uint64_t town = random() % 3;
    const double sum = a - 0.5 * b + (town == 1 ? 1 : 0);
    text += fmt::format("{},id{},{},{},town{},{}\n", label(sum, &random), i, 1e3 * a, b + 50, town,
                        1 + i % 2);
  }
  return text;
}

class LossJob : public SparseJob {
 protected:
  LossJob() {
    format_ = data::ExampleFormat::kCsv;
    params_.label = "y";
    params_.key = "id";
    params_.epochs = 5;
  }
  template <typename Label>
  void Write(const Label& label, int count = 4000) {
    ASSERT_TRUE(WriteFileAtomically(train_, Table(count, 1, label)).ok());
    ASSERT_TRUE(WriteFileAtomically(test_, Table(1000, 2, label)).ok());
  }
  // Trains with so many workers; what is predicted has the quality that was measured.
  Quality Trained(int workers) {
    const auto outcomes = Run(1, workers);
    EXPECT_TRUE(outcomes[0].ok()) << outcomes[0].status().message();
    const auto predictions = PredictTest();
    EXPECT_TRUE(predictions.ok()) << predictions.status().message();
    EXPECT_EQ(predictions->keys.size(), 1000u);
    EXPECT_EQ(predictions->keys[7], "id7");
    EXPECT_TRUE(predictions->quality.has_value());
    EXPECT_NEAR(predictions->quality->loss, outcomes[0]->held_out.loss,
                1e-4 * (1 + outcomes[0]->held_out.loss));
    return outcomes[0]->held_out;
  }
  std::string Error() { return Run(1, 1)[0].status().message(); }
};

TEST_F(LossJob, NumbersOfAnyUnit) {
  params_.loss = "squared";
  Write([](double sum, auto* random) {
    return 5e6 + 1e4 * (sum + 0.1 * std::normal_distribution<double>()(*random));
  });
  for (const int workers : {1, 3}) {
    for (const bool factorize : {false, true}) {
      factorize_ = factorize;
      const Quality quality = Trained(workers);
      EXPECT_GT(quality.r2, 0.97) << workers << factorize;
      EXPECT_LT(quality.rmse, 1.7e3) << workers << factorize;
      const auto predictions = PredictTest();
      EXPECT_NEAR(predictions->values[0], 5e6, 1e5);
    }
  }
}

TEST_F(LossJob, QuantilesCoverTheirShare) {
  params_.loss = "quantile";
  params_.quantile = 0.9;
  Write([](double sum, auto* random) {
    return 10 * (sum + std::exponential_distribution<double>()(*random));
  });
  for (const int workers : {1, 3}) EXPECT_NEAR(Trained(workers).coverage, 0.9, 0.04) << workers;
}

TEST_F(LossJob, Counts) {
  params_.loss = "poisson";
  Write([](double sum, auto* random) {
    return std::poisson_distribution<int>(std::exp(2 + 0.5 * sum))(*random);
  });
  for (const int workers : {1, 3}) EXPECT_LT(Trained(workers).deviance, 1.15) << workers;
}

// Values far out in their column meet weights that few examples have made, and predict e¹⁴ of a
// count: that epoch is no divergence, and its errors do not end what is learnt.
TEST_F(LossJob, CountsOfAColumnWithAHeavyTail) {
  params_.loss = "poisson";
  params_.epochs = 0;
  params_.threads = 1;
  const auto table = [](uint64_t seed, int count) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::string text = "y,id,a,tail\n";
    for (int i = 0; i < count; ++i) {
      const double a = normal(random), b = normal(random);
      const double rate = std::exp(0.5 + 0.3 * a + 0.2 * b);
      text += fmt::format("{},id{},{},{}\n", std::poisson_distribution<int>(rate)(random), i, a,
                          std::exp(1.5 * b));
    }
    return text;
  };
  ASSERT_TRUE(WriteFileAtomically(test_, table(7, 1000)).ok());
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    ASSERT_TRUE(WriteFileAtomically(train_, table(seed, 1500)).ok());
    EXPECT_LT(Trained(1).deviance, 1.4) << seed;
  }
}

// Where threads were not asked for.
TEST_F(LossJob, LittleDataIsTrainedByOneThread) {
  params_.loss = "squared";
  params_.threads = 0;
  default_threads_ = 4;
  const auto threads = [&](int count) {
    Write([](double sum, auto*) { return sum; }, count);
    EXPECT_TRUE(Run(1, 1)[0].ok());
    const auto metadata = model::ReadModelMetadata(dir_.path() / "model");
    return GetIntOr(*FindObject(*metadata, "training"), "threads", 0);
  };
  EXPECT_EQ(threads(1000), 1);
  const int many = static_cast<int>(threads(12000));
  EXPECT_GT(many, 1);
  EXPECT_EQ(many, std::min<int64_t>(4, std::filesystem::file_size(train_) >> 18));
  params_.threads = 3;
  EXPECT_EQ(threads(1000), 3);
}

TEST_F(LossJob, HingeSeparates) {
  params_.loss = "hinge";
  Write([](double sum, auto*) { return sum > 0.2 ? "yes" : "no"; });
  for (const int workers : {1, 3}) {
    const Quality quality = Trained(workers);
    EXPECT_GT(quality.accuracy, 0.97) << workers;
    EXPECT_LT(quality.hinge, 0.15) << workers;
  }
  EXPECT_EQ(PredictTest()->ClassOf(0), PredictTest()->values[0] > 0 ? "yes" : "no");
}

TEST_F(LossJob, SeveralClassesByName) {
  params_.loss = "softmax";
  params_.hash_bits = 12;
  Write([](double sum, auto*) { return sum < -0.5 ? "low" : sum < 0.8 ? "middle" : "high"; });
  for (const int workers : {1, 3}) {
    for (const bool factorize : {false, true}) {
      factorize_ = factorize;
      const Quality quality = Trained(workers);
      EXPECT_GT(quality.accuracy, 0.9) << workers << factorize;
      EXPECT_GT(quality.macro_f1, 0.9) << workers << factorize;
      EXPECT_LT(quality.log_loss, 0.35) << workers << factorize;
      const auto predictions = PredictTest();
      EXPECT_THAT(predictions->classes, testing::ElementsAre("high", "low", "middle"));
      EXPECT_NEAR(predictions->probabilities[0] + predictions->probabilities[1] +
                      predictions->probabilities[2],
                  1, 1e-5);
    }
  }
}

TEST_F(LossJob, SeveralClassesOfLibsvm) {
  format_ = data::ExampleFormat::kLibsvm;
  params_.loss = "softmax";
  params_.key = "";
  const auto lines = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += fmt::format("{} {}:1 9:1\n", 3 + i % 4, 1 + i % 4);
    return text;
  };
  ASSERT_TRUE(WriteFileAtomically(train_, lines(2000)).ok());
  ASSERT_TRUE(WriteFileAtomically(test_, lines(100)).ok());
  const auto outcomes = Run(1, 3);
  ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].status().message();
  EXPECT_EQ(outcomes[0]->held_out.accuracy, 1);
  const auto predictions = PredictTest();
  ASSERT_TRUE(predictions.ok()) << predictions.status().message();
  EXPECT_EQ(predictions->quality->accuracy, 1);
  EXPECT_EQ(predictions->ClassOf(2), "5");
  ASSERT_TRUE(WriteFileAtomically(test_, "9 1:1\n").ok());
  EXPECT_THAT(Error(), HasSubstr("label 9, which is none of the 4 classes of the training data"));
}

// An example of weight 0 is as if it were not there.
TEST_F(LossJob, WeightsOfExamplesAndClasses) {
  params_.loss = "logistic";
  params_.weight = "w";
  const auto table = [](bool lies) {
    std::string text = "y,id,a,w\n";
    for (int i = 0; i < 3000; ++i) {
      const int a = i % 2;
      text += fmt::format("{},{},{},3\n", a, i, a);
      if (lies) text += fmt::format("{},{},{},0\n", 1 - a, i, a);
    }
    return text;
  };
  params_.deterministic = true;
  double losses[2];
  for (const bool lies : {false, true}) {
    ASSERT_TRUE(WriteFileAtomically(train_, table(lies)).ok());
    ASSERT_TRUE(WriteFileAtomically(test_, table(false)).ok());
    const auto outcomes = Run(1, lies ? 3 : 1);
    ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].status().message();
    losses[lies] = outcomes[0]->held_out.log_loss;
    EXPECT_EQ(outcomes[0]->held_out.accuracy, 1);
  }
  EXPECT_LT(losses[1], 0.02);

  // One in ten is positive whatever the features say: balanced, the probability is a half.
  params_.weight = "";
  params_.class_weight = "balanced";
  Write([](double, auto* random) { return (*random)() % 10 == 0 ? "yes" : "no"; });
  ASSERT_TRUE(Run(1, 3)[0].ok());
  const auto predictions = PredictTest();
  double mean = 0;
  for (const float p : predictions->probabilities) mean += static_cast<double>(p) / 1000;
  EXPECT_NEAR(mean, 0.5, 0.08);
}

// Few examples and many classes of a column: weights that are learnt by heart. The best epoch is
// kept.
TEST_F(LossJob, ValidationEndsTheTrainingAndKeepsTheBestEpoch) {
  const auto table = [](uint64_t seed) {
    std::mt19937_64 random(seed);
    std::string text = "y,id,a,noise\n";
    for (int i = 0; i < 600; ++i) {
      const uint64_t a = random() % 10;
      const bool y = random() % 10 < a;
      text += fmt::format("{:d},{},{},n{}\n", y, i, a, random() % 400);
    }
    return text;
  };
  params_.loss = "logistic";
  params_.epochs = 0;
  ASSERT_TRUE(WriteFileAtomically(test_, table(3)).ok());
  ASSERT_TRUE(WriteFileAtomically(train_, table(1)).ok());
  params_.epochs = 100;
  const auto alone = Run(1, 1);
  ASSERT_TRUE(alone[0].ok()) << alone[0].status().message();
  params_.validation = "20%";
  params_.epochs = 0;
  for (const int workers : {1, 3}) {
    const auto outcomes = Run(1, workers);
    ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].status().message();
    EXPECT_GT(outcomes[0]->best_epoch, 0u) << workers;
    EXPECT_LT(outcomes[0]->job.epochs, 100u) << workers;
    EXPECT_LE(outcomes[0]->best_epoch, outcomes[0]->job.epochs);
    EXPECT_LT(outcomes[0]->held_out.log_loss, alone[0]->held_out.log_loss) << workers;
    EXPECT_NEAR(PredictTest()->quality->log_loss, outcomes[0]->held_out.log_loss, 1e-5) << workers;
    EXPECT_LT(outcomes[0]->job.counted, 520u);
    EXPECT_GT(outcomes[0]->job.counted, 440u);
  }
  params_.validation = "";
  validation_ = {test_.string()};
  for (const int workers : {1, 3}) {
    const auto outcomes = Run(1, workers);
    ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].status().message();
    EXPECT_EQ(outcomes[0]->job.counted, 600u);
    EXPECT_NEAR(outcomes[0]->validation.loss, outcomes[0]->held_out.log_loss, 1e-5) << workers;
  }
}

// It knows what was measured before, and the others have waited for it.
TEST_F(LossJob, AWorkerThatComesAgainValidatesOn) {
  params_.loss = "squared";
  params_.validation = "20%";
  params_.epochs = 40;
  params_.patience = 100;
  params_.threads = 1;
  Write([](double sum, auto* random) { return sum + std::normal_distribution<double>()(*random); });
  StartServers(1, 2);
  Epochs epochs;
  const Reporter reporter(epochs.fd());
  std::optional<Result<WorkerOutcome>> zero, one;
  std::thread first([&] { zero = One(0, "model"); });
  std::thread second([&] { one = One(1, "model", &reporter); });
  epochs.Await(2);
  stops_[1] = true;
  second.join();
  ASSERT_TRUE(one->ok()) << one->status().message();
  EXPECT_TRUE((*one)->drained);
  stops_[1] = false;
  const auto again = One(1, "model");
  first.join();
  ASSERT_TRUE(again.ok()) << again.status().message();
  ASSERT_TRUE(zero->ok()) << zero->status().message();
  EXPECT_EQ((*zero)->job.epochs, 40u);
  EXPECT_EQ((*zero)->job.trained, (*zero)->job.counted * 40);
}

TEST(Validation, PatienceCountsFromTheLastImprovement) {
  ValidationState state;
  EXPECT_TRUE(AddValidationLoss(1, 1, &state));
  EXPECT_TRUE(AddValidationLoss(0.9, 2, &state));
  EXPECT_FALSE(AddValidationLoss(0.95, 3, &state));
  EXPECT_TRUE(AddValidationLoss(0.89999, 4, &state));  // the lowest, but not by much
  EXPECT_EQ(state.best_epoch, 4u);
  EXPECT_EQ(state.improved_epoch, 2u);
}

TEST(Validation, SharesAreUpToAHalf) {
  EXPECT_EQ(*ValidationShare(""), 0);
  EXPECT_NEAR(*ValidationShare("12.5%"), 0.125, 1e-12);
  for (const char* wrong : {"10", "0%", "60%", "-5%", "x%", "%"})
    EXPECT_FALSE(ValidationShare(wrong).ok()) << wrong;
}

// Every example is held out by one fold, and learnt from in all others.
TEST_F(LossJob, FoldsHoldOutEachExampleOnce) {
  params_.loss = "squared";
  params_.epochs = 2;
  Write([](double sum, auto*) { return sum; }, 900);
  uses_test_ = false;
  uint64_t held_out = 0;
  for (const char* fold : {"1/3", "2/3", "3/3"}) {
    params_.fold = fold;
    const auto outcomes = Run(1, 1);
    ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].status().message();
    EXPECT_EQ(outcomes[0]->job.counted + outcomes[0]->held_out.examples, 900u);
    EXPECT_GT(outcomes[0]->held_out.examples, 240u);
    EXPECT_GT(outcomes[0]->held_out.r2, 0.9);
    held_out += outcomes[0]->held_out.examples;
  }
  EXPECT_EQ(held_out, 900u);
  for (const char* wrong : {"3", "0/3", "4/3", "1/1", "1/101", "a/b", "1/3x"})
    EXPECT_FALSE(FoldRange(wrong).ok()) << wrong;
}

// Finite, but far from what any constant would do.
TEST_F(LossJob, ADivergenceIsNoSuccess) {
  params_.loss = "squared";
  params_.normalize = "none";
  linear_.alpha = 1e5;
  Write([](double sum, auto*) { return sum; }, 500);
  const std::string error = Error();
  EXPECT_THAT(error, HasSubstr("the training diverged: "));
  EXPECT_THAT(error, HasSubstr("nothing is saved. Use a smaller alpha"));
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "model" / "model.json"));
}

TEST_F(LossJob, BadLabelsAreOneSentence) {
  const auto of = [&](const char* loss, const std::string& text) {
    params_.loss = loss;
    EXPECT_TRUE(WriteFileAtomically(train_, "y,id,a\n" + text).ok());
    return Error();
  };
  EXPECT_THAT(of("logistic", "1,a,1\n1,b,2\n"), HasSubstr("label: got 1 class, expected two: 1"));
  EXPECT_THAT(of("softmax", "x,a,1\nx,b,2\n"),
              HasSubstr("label: got 1 class, expected two or more: x"));
  EXPECT_THAT(of("squared", "3,a,1\nNaN,b,2\n"),
              HasSubstr(":3: got 'NaN,b,2', expected a label that is"));
  EXPECT_THAT(of("logistic", "3,a,1\nNaN,b,2\n"),
              HasSubstr("expected a label; a class that is not"));
  EXPECT_THAT(of("poisson", "3,a,1\n-1,b,2\n"),
              HasSubstr("expected a count as the label: a finite number of at least 0"));
  EXPECT_THAT(of("squared", "3,a,1\n3,b,2\n"), HasSubstr("label: all 2 examples have 3; expected"));
  params_.class_weight = "z=2";
  EXPECT_THAT(of("logistic", "p,a,1\nq,b,2\n"),
              HasSubstr("class_weight: got class z, expected one of p, q"));
  EXPECT_THAT(of("squared", "3,a,1\n4,b,2\n"), HasSubstr("the loss squared has no classes"));
  params_.class_weight = "";
  params_.weight = "a";
  EXPECT_THAT(of("logistic", "p,a,-1\nq,b,2\n"),
              HasSubstr(":2: got '-1', expected a weight: a finite number of at least 0"));
  EXPECT_THAT(of("logistic", "p,a,0\nq,b,0\n"),
              HasSubstr("weight: the weights of all examples are 0"));
  params_.weight = "y";
  EXPECT_THAT(of("logistic", "p,a,0\nq,b,0\n"), HasSubstr("weight: column y is the label's"));
  params_.weight = "";
  ASSERT_TRUE(WriteFileAtomically(test_, "y,id,a\nr,a,1\n").ok());
  EXPECT_THAT(
      of("softmax", "p,a,0\nq,b,0\ns,c,1\n"),
      HasSubstr(":2: got 'r,a,1', expected a label that the training data has: one of p, q, s"));
  std::string many;
  for (int i = 0; i < 10000; ++i) many += fmt::format("c{},{},{}\n", i, i, i);
  EXPECT_THAT(of("softmax", many), HasSubstr("expected a label of one of at most 1000 classes"));
}

}  // namespace
}  // namespace shoal::learn::sparse
