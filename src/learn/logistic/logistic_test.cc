// Whole trainings in one process: servers, workers with clients of their own, examples with a
// planted rule, a model on disk that predicts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>

#include "base/file.h"
#include "learn/logistic/kernels.h"
#include "learn/logistic/position.h"
#include "learn/logistic/predict.h"
#include "learn/logistic/worker.h"
#include "learn/parameter_server.h"
#include "ps/server.h"

namespace shoal::learn::logistic {
namespace {

class FixedMembers final : public ps::Members {
 public:
  ps::MemberView Current() override { return view; }
  ps::MemberView view;
};

// 300 features, each with a hidden weight; labels are drawn by the logistic model.
std::string PlantedLines(uint64_t seed, int examples) {
  std::mt19937_64 weights_of(1);
  std::vector<double> weights(301);
  for (double& w : weights) w = std::normal_distribution<double>(0, 2)(weights_of);
  std::mt19937_64 random(seed);
  std::string text;
  for (int i = 0; i < examples; ++i) {
    std::string features;
    double margin = 0.5;
    for (uint32_t f = 1; f <= 300; ++f) {
      if (random() % 20 != 0) continue;
      features += fmt::format(" {}:1", f);
      margin += weights[f];
    }
    const bool positive = std::bernoulli_distribution(1 / (1 + std::exp(-margin)))(random);
    text += (positive ? "1" : "-1") + features + "\n";
  }
  return text;
}

class LogisticJob : public testing::Test {
 protected:
  LogisticJob() {
    EXPECT_TRUE(WriteFileAtomically(train_, PlantedLines(2, 6000)).ok());
    EXPECT_TRUE(WriteFileAtomically(test_, PlantedLines(3, 2000)).ok());
    params_.epochs = 3;
    params_.threads = 2;
  }

  std::vector<Result<WorkerOutcome>> Run(int servers, int workers, const char* output = "model") {
    auto hub = std::make_shared<ps::InProcessHub>();
    FixedMembers members;
    members.view = {1, {}, workers};
    std::vector<std::unique_ptr<ps::Server>> running;
    for (int i = 0; i < servers; ++i) {
      ps::ServerOptions options;
      options.index = i;
      options.servers = servers;
      options.workers = workers;
      options.token = "token";
      options.shards = kShards;
      options.listen_host.clear();
      options.hub = hub;
      options.inproc_name = "server-" + std::to_string(i);
      running.push_back(ps::Server::Start(std::move(options)).value());
      members.view.servers.push_back(running.back()->inproc_address());
    }
    std::vector<std::optional<Result<WorkerOutcome>>> outcomes(static_cast<size_t>(workers));
    std::vector<std::thread> threads;
    for (int i = 0; i < workers; ++i)
      threads.emplace_back(
          [&, i] { outcomes[static_cast<size_t>(i)] = One(i, workers, hub, &members, output); });
    for (std::thread& thread : threads) thread.join();
    std::vector<Result<WorkerOutcome>> all;
    for (auto& outcome : outcomes) all.push_back(std::move(*outcome));
    return all;
  }

  Result<WorkerOutcome> One(int index, int workers, std::shared_ptr<ps::InProcessHub> hub,
                            ps::Members* members, const char* output) {
    ps::ClientOptions options;
    options.index = index;
    options.token = "token";
    options.hub = std::move(hub);
    options.consistency = ps::Consistency::Ssp(kStaleness);
    TRY_ASSIGN(const auto client, ps::Client::Connect(std::move(options), members));
    WorkerSetup setup;
    setup.index = index;
    setup.workers = workers;
    setup.params = params_;
    setup.sources = {train_.string()};
    setup.held_out = {test_.string()};
    setup.output = dir_.path() / output;
    setup.client = client.get();
    setup.reporter = &reporter_;
    setup.stop = &stop_;
    return RunWorker(setup);
  }

  TempDir dir_ = TempDir::Create().value();
  const std::filesystem::path train_ = dir_.path() / "train.svm";
  const std::filesystem::path test_ = dir_.path() / "test.svm";
  Params params_;
  Reporter reporter_{-1};
  std::atomic<bool> stop_{false};
};

TEST_F(LogisticJob, FindsThePlantedRuleAndItsModelPredictsTheSame) {
  for (const char* optimizer : {"ftrl", "adagrad"}) {
    params_.optimizer = optimizer;
    const auto outcomes = Run(1, 1);
    ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].status().message();
    const Quality& quality = outcomes[0]->held_out;
    EXPECT_EQ(outcomes[0]->examples, 18000u);
    EXPECT_GT(quality.auc, 0.9) << optimizer;
    const auto model = model::ReadLinearModel(dir_.path() / "model");
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto predictions = Predict(*model, {test_.string()}, 3);
    ASSERT_TRUE(predictions.ok()) << predictions.status().message();
    EXPECT_NEAR(predictions->quality->auc, quality.auc, 1e-6);
    EXPECT_NEAR(predictions->quality->log_loss, quality.log_loss, 1e-5);
    EXPECT_EQ(predictions->probabilities.size(), 2000u);
  }
}

TEST_F(LogisticJob, ThreeWorkersAndTwoServersLearnAsWellAsOne) {
  const auto alone = Run(1, 1);
  ASSERT_TRUE(alone[0].ok()) << alone[0].status().message();
  const auto together = Run(2, 3);
  uint64_t examples = 0;
  for (const auto& outcome : together) {
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    examples += outcome->examples;
  }
  EXPECT_EQ(examples, 18000u);
  EXPECT_NEAR(together[0]->held_out.auc, alone[0]->held_out.auc, 0.02);
}

TEST_F(LogisticJob, DeterministicMeansTheSameBytes) {
  params_.deterministic = true;
  for (const int workers : {1, 3}) {
    const auto a = Run(2, workers, "a");
    const auto b = Run(2, workers, "b");
    ASSERT_TRUE(a[0].ok() && b[0].ok());
    EXPECT_EQ(a[0]->digest, b[0]->digest) << workers;
  }
}

TEST_F(LogisticJob, HashedFeaturesAndBadLines) {
  params_.hash_bits = 12;
  const auto outcomes = Run(1, 1);
  ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].status().message();
  EXPECT_GT(outcomes[0]->held_out.auc, 0.88);
  ASSERT_TRUE(WriteFileAtomically(train_, "1 1:1\n7 2:1\n").ok());
  EXPECT_EQ(Run(1, 1)[0].status().message(),
            train_.string() + ":2: got '7', expected a label: -1, 0 or 1");
}

TEST(LogisticQuality, AgreesWithCountingPairs) {
  std::mt19937_64 random(8);
  std::vector<Scored> scored(200);
  for (Scored& one : scored)
    one = {static_cast<float>(random() % 30) / 10 - 1, static_cast<float>(random() % 2)};
  double above = 0, pairs = 0, loss = 0;
  for (const Scored& p : scored) {
    loss -= std::log(p.label > 0 ? Probability(p.margin) : 1 - Probability(p.margin));
    for (const Scored& n : scored) {
      if (p.label != 1 || n.label != 0) continue;
      ++pairs;
      above += p.margin > n.margin ? 1 : p.margin == n.margin ? 0.5 : 0;
    }
  }
  const Quality quality = MeasureQuality(scored);
  EXPECT_NEAR(quality.auc, above / pairs, 1e-12);
  EXPECT_NEAR(quality.log_loss, loss / 200, 1e-5);
  std::vector<Scored> one_class(3);
  EXPECT_TRUE(std::isnan(MeasureQuality(one_class).auc));
}

TEST(LogisticPosition, BytesGoBothWays) {
  const std::vector<Position> positions = {{1, 2}, {3, 4}};
  const std::string bytes = EncodePositions(positions);
  EXPECT_EQ(DecodePositions(bytes).value(), positions);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(DecodePositions(bytes.substr(0, size)).ok());
}

}  // namespace
}  // namespace shoal::learn::logistic
