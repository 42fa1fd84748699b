// Whole trainings in one process: what they learn, and what becomes of lost tasks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <random>
#include <thread>

#include "learn/sparse/test_sparse_job.h"

namespace shoal::learn::sparse {
namespace {

TEST_F(SparseJob, FindsThePlantedRuleAndItsModelPredictsTheSame) {
  for (const char* what : {"ftrl", "adagrad", "fm"}) {
    factorize_ = what == std::string("fm");
    if (!factorize_) linear_.optimizer = what;
    const auto outcomes = Run(1, 1);
    ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].status().message();
    const Quality& quality = outcomes[0]->held_out;
    EXPECT_EQ(outcomes[0]->examples, 18000u);
    EXPECT_GT(quality.auc, 0.9) << what;
    const auto predictions = PredictTest();
    ASSERT_TRUE(predictions.ok()) << predictions.status().message();
    EXPECT_NEAR(predictions->quality->auc, quality.auc, 1e-6);
    EXPECT_NEAR(predictions->quality->log_loss, quality.log_loss, 1e-5);
    EXPECT_EQ(predictions->probabilities.size(), 2000u);
  }
}

TEST_F(SparseJob, AStopBeforeTheFirstExampleLeavesTheOldModel) {
  ASSERT_TRUE(Run(1, 1)[0].ok());
  const std::string digest = model::DigestOf(dir_.path() / "model" / "weights.bin").value();
  for (std::atomic<bool>& stop : stops_) stop = true;
  for (const int workers : {1, 2})
    EXPECT_EQ(Run(1, workers)[0].status().code(), Code::kCancelled) << workers;
  EXPECT_EQ(model::DigestOf(dir_.path() / "model" / "weights.bin").value(), digest);
}

TEST_F(SparseJob, FactorsSayWhatPairsMean) {
  ASSERT_TRUE(WriteFileAtomically(train_, PlantedPairs(5, 6000)).ok());
  ASSERT_TRUE(WriteFileAtomically(test_, PlantedPairs(6, 2000)).ok());
  params_.epochs = 8;
  params_.normalize = "none";
  fm_.factor_init = 0.2;
  const auto linear = Run(1, 1);
  ASSERT_TRUE(linear[0].ok()) << linear[0].status().message();
  EXPECT_LT(linear[0]->held_out.auc, 0.6);
  factorize_ = true;
  for (const int workers : {1, 3}) {
    const auto outcomes = Run(2, workers);
    ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].status().message();
    EXPECT_GT(outcomes[0]->held_out.auc, 0.9) << workers;
  }
}

TEST_F(SparseJob, FieldsSayWhatOneVectorCannot) {
  ASSERT_TRUE(WriteFileAtomically(train_, PlantedFields(5, 8000)).ok());
  ASSERT_TRUE(WriteFileAtomically(test_, PlantedFields(6, 2000)).ok());
  params_.epochs = 8;
  params_.normalize = "none";
  format_ = data::ExampleFormat::kLibffm;
  ffm_.factor_init = 0.3;
  ffm_.factor_alpha = 0.2;
  by_field_ = true;
  for (const auto& [workers, fields, bits] :
       {std::tuple{1, 0, 0}, {3, 0, 0}, {3, 4, 12}, {3, 0, 12}}) {
    params_.fields = fields;
    params_.hash_bits = bits;
    const auto outcomes = Run(2, workers);
    ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].status().message();
    EXPECT_GT(outcomes[0]->held_out.auc, 0.9) << workers << " " << fields;
    const auto predictions = PredictTest();
    ASSERT_TRUE(predictions.ok()) << predictions.status().message();
    EXPECT_NEAR(predictions->quality->auc, outcomes[0]->held_out.auc, 1e-6);
    EXPECT_NEAR(predictions->quality->log_loss, outcomes[0]->held_out.log_loss, 1e-5);
  }
  format_ = data::ExampleFormat::kLibsvm;
  EXPECT_EQ(Run(1, 1)[0].status().message(),
            "data format: got libsvm, whose features have no fields; expected libffm or a table "
            "such as csv (where a "
            "column is a field)");
}

// Each worker's share, and what the others did in the meantime.
TEST_F(SparseJob, ServersThatComeBackEmptyAreGivenTheStateAgain) {
  over_tcp_ = true;
  params_.epochs = 12;
  params_.threads = 1;
  for (const bool factorize : {false, true}) {
    factorize_ = factorize;
    const auto alone = Run(1, 1);
    ASSERT_TRUE(alone[0].ok()) << alone[0].status().message();
    StartServers(2, 2);
    Epochs epochs;
    const Reporter reporter(epochs.fd());
    std::optional<Result<WorkerOutcome>> outcomes[2];
    std::thread first([&] { outcomes[0] = One(0, "model", &reporter); });
    std::thread second([&] { outcomes[1] = One(1, "model"); });
    epochs.Await(4);
    StartServer(1);
    epochs.Await(8);
    StartServer(1);
    StartServer(0);
    first.join();
    second.join();
    for (const auto& outcome : outcomes) ASSERT_TRUE(outcome->ok()) << outcome->status().message();
    EXPECT_EQ((*outcomes[0])->examples + (*outcomes[1])->examples, 6000u * 12);
    EXPECT_EQ((*outcomes[0])->job.trained, 6000u * 12);
    EXPECT_EQ((*outcomes[0])->job.counted, 6000u);
    EXPECT_NEAR((*outcomes[0])->held_out.auc, alone[0]->held_out.auc, 0.02) << factorize;
    EXPECT_LT((*outcomes[0])->held_out.log_loss, alone[0]->held_out.log_loss + 0.1) << factorize;
  }
}

// The border between two parts is near the end of a compressed file: where each worker cut by its
// own number of threads, examples were left out or trained by both.
TEST_F(SparseJob, WorkersWithUnlikeThreadsTrainEveryExampleOnce) {
  const auto large = dir_.path() / "large.gz", small = dir_.path() / "small.gz";
  ASSERT_TRUE(WriteFileAtomically(large, data::Gzip(PlantedLines(4, 3050))).ok());
  ASSERT_TRUE(WriteFileAtomically(small, data::Gzip(PlantedLines(5, 2950))).ok());
  for (const auto& files : {std::vector{large, small}, std::vector{small, large}}) {
    sources_ = {files[0].string(), files[1].string()};
    for (const auto& threads : {std::vector<int64_t>{1, 4}, {4, 1}, {2, 8}}) {
      threads_of_ = threads;
      const auto outcomes = Run(1, 2);
      for (const auto& outcome : outcomes) ASSERT_TRUE(outcome.ok()) << outcome.status().message();
      EXPECT_EQ(outcomes[0]->examples + outcomes[1]->examples, 18000u);
      EXPECT_EQ(outcomes[0]->job.trained, 18000u);
      EXPECT_EQ(outcomes[0]->job.counted, 6000u);
      EXPECT_EQ(outcomes[0]->job.epochs, 3u);
    }
  }
}

TEST_F(SparseJob, WorkersThatSeeOtherFilesAreAnError) {
  const auto other = dir_.path() / "other.svm";
  ASSERT_TRUE(WriteFileAtomically(other, PlantedLines(2, 5999)).ok());
  sources_of_ = {{train_.string()}, {other.string()}};
  for (const int64_t bits : {0, 12}) {
    params_.hash_bits = bits;
    for (const auto& outcome : Run(1, 2)) {
      EXPECT_EQ(outcome.status().code(), Code::kFailedPrecondition);
      EXPECT_EQ(outcome.status().message().find("workers 0 and 1 see different data"), 0u)
          << outcome.status().message();
    }
  }
}

// One that was told to end by somebody else than the job: it comes again and does its part.
TEST_F(SparseJob, AWorkerThatWasToldToEndEarlyIsWaitedFor) {
  params_.epochs = 100;
  StartServers(1, 2);
  Epochs epochs;
  const Reporter reporter(epochs.fd());
  std::optional<Result<WorkerOutcome>> first, second;
  std::thread zero([&] { first = One(0, "model"); });
  std::thread one([&] { second = One(1, "model", &reporter); });
  epochs.Await(2);
  stops_[1] = true;
  one.join();
  ASSERT_TRUE(second->ok()) << second->status().message();
  EXPECT_TRUE((*second)->drained);
  EXPECT_LT((*second)->examples, 3000u * 100);
  stops_[1] = false;
  const auto again = One(1, "model");
  zero.join();
  ASSERT_TRUE(again.ok()) << again.status().message();
  ASSERT_TRUE(first->ok()) << first->status().message();
  EXPECT_FALSE((*first)->drained);
  EXPECT_EQ((*first)->examples + (*second)->examples + again->examples, 6000u * 100);
  EXPECT_EQ((*first)->job.trained, 6000u * 100);
}

TEST_F(SparseJob, AWorkerThatEndedWithoutItsPartFailsTheJob) {
  params_.epochs = 100;
  StartServers(1, 2);
  Epochs epochs;
  const Reporter reporter(epochs.fd());
  std::optional<Result<WorkerOutcome>> first, second;
  std::thread zero([&] { first = One(0, "model"); });
  std::thread one([&] { second = One(1, "model", &reporter); });
  epochs.Await(2);
  stops_[1] = true;
  one.join();
  {
    const std::lock_guard lock(ended_mu_);
    ended_ = {1};
  }
  zero.join();
  EXPECT_EQ(first->status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(first->status().message().find("worker 1 has ended and has trained "), 0u)
      << first->status().message();
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "model" / "model.json"));
}

// Its saved position would mean other examples.
TEST_F(SparseJob, AWorkerThatComesAgainToOtherDataIsAnError) {
  params_.epochs = 100;
  StartServers(1, 2);
  Epochs epochs;
  const Reporter reporter(epochs.fd());
  std::optional<Result<WorkerOutcome>> first, second;
  std::thread zero([&] { first = One(0, "model"); });
  std::thread one([&] { second = One(1, "model", &reporter); });
  epochs.Await(2);
  stops_[1] = true;
  one.join();
  ASSERT_TRUE(second->ok()) << second->status().message();
  stops_[1] = false;
  const auto other = dir_.path() / "other.svm";
  ASSERT_TRUE(WriteFileAtomically(other, PlantedLines(2, 6100)).ok());
  sources_of_ = {{train_.string()}, {other.string()}};
  const auto again = One(1, "model");
  EXPECT_EQ(again.status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(again.status().message().find("the data has changed since worker 1 began"), 0u)
      << again.status().message();
  stops_[0] = true;
  zero.join();
  EXPECT_TRUE(first->ok()) << first->status().message();
}

// As a checkpoint of a release whose parts were one range of bytes says.
TEST_F(SparseJob, ATrainingThatBeganWithOneRangeAWorkerGoesOnSo) {
  ASSERT_GT(DivisionFor(data::Corpus::Open(sources_).value(), format_, 2).blocks, 1u);
  StartServers(1, 2);
  // Of no worker, so that nobody takes it for a part.
  ASSERT_TRUE(ConnectAs(0)->PutBlob("share/9", EncodePartSummary(PartSummary())).ok());
  auto second = std::async(std::launch::async, [&] { return One(1, "model"); });
  const auto first = One(0, "model");
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_TRUE(second.get().ok());
  EXPECT_EQ(first->job.trained, 6000u * 3);
  const auto client = ConnectAs(0);
  for (const char* name : {"share/0", "share/1"}) {
    const PartSummary share = DecodePartSummary(client->GetBlob(name).value(), name).value();
    EXPECT_EQ(share.blocks, 1u);
    EXPECT_EQ(share.ranges.size(), 1u);
  }
}

// None has one half of it.
TEST_F(SparseJob, WorkersTakeBlocksOfTheWholeFile) {
  const auto outcomes = Run(1, 2);
  for (const auto& outcome : outcomes) ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcomes[0]->job.trained, 6000u * 3);
  const auto client = ConnectAs(0);
  for (const char* name : {"share/0", "share/1"}) {
    const PartSummary share = DecodePartSummary(client->GetBlob(name).value(), name).value();
    EXPECT_GT(share.blocks, 1u);
    EXPECT_GT(share.ranges.size(), 1u);
    EXPECT_NEAR(static_cast<double>(share.examples), 3000, 60);
  }
}

// What it has trained would be lost for a file that somebody put there meanwhile.
TEST_F(SparseJob, AWorkerThatComesAgainSavesBesideFilesThatCameMeanwhile) {
  params_.threads = 1;
  StartServers(1, 1);
  const auto notes = dir_.path() / "model" / "notes.txt";
  ASSERT_TRUE(MakeDirectories(notes.parent_path()).ok());
  ASSERT_TRUE(WriteFileAtomically(notes, "a person's").ok());
  EXPECT_EQ(One(0, "model").status().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(ConnectAs(0)->SetProgress(EncodePositions({{1, 0, 6000}})).ok());
  const auto again = One(0, "model");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->job.trained, 6000u * 3);
  EXPECT_TRUE(std::filesystem::exists(notes));
}

// However long that takes: here for fifty times as long as a wait for it goes without a look.
TEST_F(SparseJob, ASlowWorkerIsWaitedForWhileItLives) {
  look_ = std::chrono::milliseconds(1);
  params_.epochs = 5;
  params_.rounds = 1;
  StartServers(1, 2);
  Epochs epochs;
  const Reporter reporter(epochs.fd());
  auto fast = std::async(std::launch::async, [&] { return One(0, "model", &reporter); });

  const auto slow = Played(1);
  epochs.Await(2);  // it may be no further ahead
  EXPECT_EQ(fast.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  ASSERT_TRUE(slow->SetProgress(EncodePositions({{5, 0, 200}})).ok());
  ASSERT_TRUE(slow->Leave().ok());
  const auto outcome = fast.get();
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->job.trained, outcome->examples + 200);
}

// It has trained its part and waits for the first worker to hear so.
TEST_F(SparseJob, AWorkerThatWaitsTellsAServerThatCameBack) {
  over_tcp_ = true;
  cache_data_ = CacheMode::kOff;  // each has the part of its own number
  StartServers(1, 2);
  const auto first = Played(0);
  auto waits = std::async(std::launch::async, [&] { return One(1, "model"); });
  ASSERT_TRUE(first->Clock(1000).ok());  // holds nobody up
  const auto trained = [&] {
    const auto bytes = first->GetProgress(1);
    const auto at = DecodePositions(bytes.ok() ? *bytes : "");
    return at.ok() ? TrainedBy(*at) : 0;
  };
  const TimePoint deadline = RealClock::Get()->Now() + std::chrono::seconds(60);
  const auto await = [&](uint64_t least) {
    while (trained() < least && RealClock::Get()->Now() < deadline) std::this_thread::yield();
    return trained();
  };
  ASSERT_GT(await(1), 0u);
  const uint64_t all =
      3 * DecodePartSummary(first->GetBlob("share/1").value(), "").value().examples;
  ASSERT_EQ(await(all), all);
  StartServer(0);  // knows nothing
  EXPECT_EQ(await(all), all);
  // A first worker that was lost with the server would wait for the share, too.
  while (!first->GetBlob("share/1").ok() && RealClock::Get()->Now() < deadline)
    std::this_thread::yield();
  EXPECT_TRUE(first->GetBlob("share/1").ok());
  ASSERT_TRUE(first->Leave().ok());
  const auto outcome = waits.get();
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->examples, all);
}

TEST_F(SparseJob, ThreeWorkersAndTwoServersLearnAsWellAsOne) {
  const auto alone = Run(1, 1);
  ASSERT_TRUE(alone[0].ok()) << alone[0].status().message();
  const auto together = Run(2, 3);
  uint64_t examples = 0;
  for (const auto& outcome : together) {
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    examples += outcome->examples;
    EXPECT_GT(outcome->exchange.exchanges, 0u);
    EXPECT_GT(outcome->exchange.exchange, 0);
    EXPECT_LE(outcome->exchange.exchange + outcome->exchange.waited, 1);
    EXPECT_GT(outcome->exchange.bytes_per_example, 0);
  }
  EXPECT_EQ(alone[0]->exchange.exchanges, 0u);
  EXPECT_EQ(examples, 18000u);
  EXPECT_NEAR(together[0]->held_out.auc, alone[0]->held_out.auc, 0.02);
}

// Each of many goes all the way to the best value of what is in every example, and is late to see
// that the others do: added up as it is, that grows from round to round.
TEST_F(SparseJob, EightWorkersLearnAsWellAsOne) {
  const auto with_common = [](std::string text) {
    std::string common;
    for (int feature = 301; feature <= 330; ++feature) common += fmt::format(" {}:1", feature);
    for (size_t at = 0; (at = text.find('\n', at)) != text.npos; at += common.size() + 1)
      text.insert(at, common);
    return text;
  };
  ASSERT_TRUE(WriteFileAtomically(train_, with_common(PlantedLines(2, 6000))).ok());
  ASSERT_TRUE(WriteFileAtomically(test_, with_common(PlantedLines(3, 2000))).ok());
  params_.threads = 1;
  params_.epochs = 8;
  for (const bool factorize : {false, true}) {
    factorize_ = factorize;
    const auto alone = Run(1, 1);
    ASSERT_TRUE(alone[0].ok()) << alone[0].status().message();
    const auto together = Run(1, 8);
    for (const auto& outcome : together) ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    EXPECT_GT(together[0]->held_out.auc, alone[0]->held_out.auc - 0.02) << factorize;
    EXPECT_LT(together[0]->held_out.log_loss, alone[0]->held_out.log_loss + 0.05) << factorize;
  }
}

// Features that are in every example and move together: between two exchanges each worker goes all
// the way, the more examples the farther.
TEST_F(SparseJob, EightWorkersOnDenseExamplesLearnAsWellAsOne) {
  const auto dense = [](uint64_t seed, int examples) {
    constexpr int kFeatures = 40;
    std::mt19937_64 weights_of(1), random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> weights(kFeatures);
    for (double& w : weights) w = 0.6 * normal(weights_of);
    std::string text;
    for (int i = 0; i < examples; ++i) {
      std::string features;
      const double common = normal(random);
      double margin = -0.5;
      for (int f = 0; f < kFeatures; ++f) {
        const double x = normal(random) + common + 0.5;
        features += fmt::format(" {}:{:.3f}", f + 1, x);
        margin += weights[static_cast<size_t>(f)] * x;
      }
      const bool positive = std::bernoulli_distribution(1 / (1 + std::exp(-margin)))(random);
      text += (positive ? "1" : "-1") + features + "\n";
    }
    return text;
  };
  ASSERT_TRUE(WriteFileAtomically(train_, dense(2, 16000)).ok());
  ASSERT_TRUE(WriteFileAtomically(test_, dense(3, 2000)).ok());
  params_.threads = 1;
  params_.epochs = 2;
  const auto alone = Run(1, 1);
  ASSERT_TRUE(alone[0].ok()) << alone[0].status().message();
  const auto together = Run(1, 8);
  for (const auto& outcome : together) ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_LT(together[0]->held_out.log_loss, 1.04 * alone[0]->held_out.log_loss);
}

TEST_F(SparseJob, DeterministicMeansTheSameBytes) {
  params_.deterministic = true;
  for (const int workers : {1, 3, 4}) {
    factorize_ = workers != 3;
    by_field_ = workers == 4;
    if (by_field_) {
      format_ = data::ExampleFormat::kLibffm;
      ASSERT_TRUE(WriteFileAtomically(train_, PlantedFields(5, 3000)).ok());
      ASSERT_TRUE(WriteFileAtomically(test_, PlantedFields(6, 500)).ok());
    }
    const auto a = Run(2, workers, "a");
    const auto b = Run(2, workers, "b");
    ASSERT_TRUE(a[0].ok() && b[0].ok());
    EXPECT_EQ(a[0]->digest, b[0]->digest) << workers;
  }
}

TEST_F(SparseJob, HashedFeaturesAndBadLines) {
  params_.hash_bits = 12;
  const auto outcomes = Run(1, 1);
  ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].status().message();
  EXPECT_GT(outcomes[0]->held_out.auc, 0.88);
  ASSERT_TRUE(WriteFileAtomically(train_, "1 1:1\n7 2:1\n").ok());
  EXPECT_EQ(Run(1, 1)[0].status().message(),
            train_.string() + ":2: got '7', expected a label: -1, 0 or 1");
}

TEST(SparseQuality, AgreesWithCountingPairs) {
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

TEST(SparsePosition, BytesGoBothWays) {
  const std::vector<Position> positions = {{1, 2, 7}, {3, 4, 8}};
  EXPECT_EQ(TrainedBy(positions), 15u);
  const std::string bytes = EncodePositions(positions);
  EXPECT_EQ(DecodePositions(bytes).value(), positions);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(DecodePositions(bytes.substr(0, size)).ok());
}

}  // namespace
}  // namespace shoal::learn::sparse
