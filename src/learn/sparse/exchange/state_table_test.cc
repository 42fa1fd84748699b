// What a worker without others stores, and what a worker after it finds.
#include "learn/sparse/exchange/state_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "learn/fm/learner.h"
#include "learn/logistic/learner.h"
#include "ps/server/server.h"
#include "ps/testing/test_cluster.h"

namespace shoal::learn::sparse {
namespace {

constexpr uint64_t kFeatures = 1000;  // 16 rows
constexpr int kWorkers = 3;

class SparseStore : public testing::Test {
 protected:
  SparseStore() {
    hub_ = std::make_shared<ps::InProcessHub>();
    ps::ServerOptions options;
    options.servers = 1;
    options.workers = kWorkers;
    options.token = "token";
    options.listen_host.clear();
    options.hub = hub_;
    options.inproc_name = "server";
    server_ = ps::Server::Start(std::move(options)).value();
    members_.Set(0, server_->inproc_address());
    learner_ = std::make_unique<logistic::LogisticLearner>(
        logistic::LogisticLearner::Make(logistic::Params()).value());
    for (int i = 0; i < kWorkers; ++i) {
      ps::ClientOptions client;
      client.index = i;
      client.token = "token";
      client.hub = hub_;
      clients_.push_back(ps::Client::Connect(std::move(client), &members_).value());
      tables_.push_back(
          StateTable::Make(clients_.back().get(), kFeatures, learner_.get(), "auto").value());
    }
  }

  // z and n of a feature, as FTRL-proximal has them.
  void Train(size_t worker, uint64_t feature, float z, float n) {
    tables_[worker]->state()[2 * feature] = z;
    tables_[worker]->state()[2 * feature + 1] = n;
  }
  void ExpectFeature(size_t worker, uint64_t feature, float z, float n) {
    EXPECT_NEAR(tables_[worker]->state()[2 * feature], z, 1e-5 * std::abs(z)) << feature;
    EXPECT_NEAR(tables_[worker]->state()[2 * feature + 1], n, 1e-6 * n) << feature;
  }
  void Fetch(size_t worker) {
    ASSERT_TRUE(tables_[worker]->Pull(0, 1, StateTable::RowSet::kUsed).ok());
    tables_[worker]->Adopt(0, 1);
  }
  void Exchange(size_t worker) {
    Fetch(worker);
    ASSERT_TRUE(tables_[worker]->Push(0, 1).ok());
  }
  void Store(size_t worker) { ASSERT_TRUE(tables_[worker]->Store(0, 1).ok()); }
  uint64_t BytesPushed(size_t worker) { return clients_[worker]->counters().bytes_pushed; }

  std::shared_ptr<ps::InProcessHub> hub_;
  ps::FixedMembers members_;
  std::unique_ptr<ps::Server> server_;
  std::unique_ptr<logistic::LogisticLearner> learner_;
  std::vector<std::unique_ptr<ps::Client>> clients_;
  std::vector<std::unique_ptr<StateTable>> tables_;
};

TEST_F(SparseStore, TheNextWorkerBeginsWhereTheFirstOneHasStored) {
  Train(0, 3, -2, 4);  // before the table was needed
  ASSERT_TRUE(tables_[0]->Connect().ok());
  Store(0);
  Train(0, 3, -1.5f, 5);
  Train(0, 999, 0.25f, 1);
  Store(0);
  ASSERT_TRUE(tables_[1]->Connect().ok());
  ExpectFeature(1, 3, -1.5f, 5);
  ExpectFeature(1, 999, 0.25f, 1);
  ExpectFeature(1, 4, 0, 0);
  ExpectFeature(0, 3, -1.5f, 5);
}

TEST_F(SparseStore, OnlyRowsThatChangedAreSent) {
  ASSERT_TRUE(tables_[0]->Connect().ok());
  for (uint64_t feature = 0; feature < kFeatures; ++feature) Train(0, feature, 1, 1);
  Store(0);
  const uint64_t all = BytesPushed(0);
  Store(0);
  EXPECT_EQ(BytesPushed(0), all);
  Train(0, 3, 2, 2);
  Store(0);
  EXPECT_GT(BytesPushed(0), all);
  EXPECT_LT(BytesPushed(0) - all, all / 10);
}

TEST_F(SparseStore, WhatIsTrainedInATurnGoesWithItsPush) {
  for (int i = 0; i < kWorkers; ++i) ASSERT_TRUE(tables_[i]->Connect().ok());
  Train(0, 3, -2, 4);
  Fetch(0);
  ExpectFeature(0, 3, -2, 4);
  Train(0, 3, -3, 6);
  Train(0, 4, 1, 2);
  ASSERT_TRUE(tables_[0]->Push(0, 1).ok());
  Exchange(0);  // nothing is left
  Train(1, 5, 1, 1);
  Exchange(1);
  ExpectFeature(1, 3, -3, 6);
  ExpectFeature(1, 4, 1, 2);
  Exchange(0);
  ExpectFeature(0, 5, 1, 1);
  EXPECT_EQ(tables_[0]->TakePartialPushCount() + tables_[1]->TakePartialPushCount(), 0u);
}

TEST_F(SparseStore, RowsThatAWorkerWillTrainComeWithItsFirstExchange) {
  const std::vector<uint32_t> features = {3};
  tables_[1]->Use(features);
  for (int i = 0; i < kWorkers; ++i) ASSERT_TRUE(tables_[i]->Connect().ok());
  Train(0, 3, -2, 4);
  Train(0, 500, -2, 4);
  Exchange(0);
  Exchange(1);
  ExpectFeature(1, 3, -2, 4);
  ExpectFeature(1, 500, 0, 0);
}

// The features of an example.
Row RowOf(const std::vector<uint32_t>& features) {
  return {features.data(), nullptr, static_cast<uint32_t>(features.size()), 1, nullptr};
}

TEST_F(SparseStore, OnlyRowsThatWereTrainedOrWillBeAreExchangedWithTheRest) {
  for (int i = 0; i < kWorkers; ++i) ASSERT_TRUE(tables_[i]->Connect().ok());
  const std::vector<uint32_t> trained = {3, 500}, wanted = {3, 900};
  Train(0, 3, -2, 4);
  Train(0, 500, 1, 2);
  Train(0, 700, 1, 2);  // not said
  tables_[0]->Touch(RowOf(trained));
  ASSERT_TRUE(tables_[0]->ExchangeRest(0, 1, StateTable::RestSet::kNeeded).ok());
  Train(2, 900, -1, 3);
  tables_[2]->Touch(RowOf(wanted));
  ASSERT_TRUE(tables_[2]->ExchangeRest(0, 1, StateTable::RestSet::kTouched).ok());
  tables_[1]->Need(RowOf(wanted));
  ASSERT_TRUE(tables_[1]->ExchangeRest(0, 1, StateTable::RestSet::kTouched).ok());
  ExpectFeature(1, 3, 0, 0);
  ASSERT_TRUE(tables_[1]->ExchangeRest(0, 1, StateTable::RestSet::kNeeded).ok());
  ExpectFeature(1, 3, -2, 4);
  ExpectFeature(1, 900, -1, 3);
  ExpectFeature(1, 500, 0, 0);
  ASSERT_TRUE(tables_[1]->TakeAll().ok());
  ExpectFeature(1, 500, 1, 2);
  ExpectFeature(1, 700, 0, 0);
}

// What one worker has trained often waits for its turn; the rest of it does not.
TEST_F(SparseStore, WhatIsTrainedOftenGoesWithTheFrequentRows) {
  tables_[0]->ShareWith(16);
  for (int i = 0; i < kWorkers; ++i) ASSERT_TRUE(tables_[i]->Connect().ok());
  const std::vector<uint32_t> often = {3}, once = {500};
  Train(0, 3, -2, 4);
  Train(0, 500, 1, 2);
  Train(0, kFeatures, -1, 1);  // the bias
  for (int i = 0; i < 4; ++i) tables_[0]->Touch(RowOf(often));
  tables_[0]->Touch(RowOf(once));
  ASSERT_TRUE(tables_[0]->Pull(0, 1, StateTable::RowSet::kFrequent).ok());
  tables_[0]->Adopt(0, 1);
  ASSERT_TRUE(tables_[0]->Push(0, 1).ok());
  ASSERT_TRUE(tables_[1]->TakeAll().ok());
  ExpectFeature(1, 3, -2, 4);
  ExpectFeature(1, kFeatures, -1, 1);
  ExpectFeature(1, 500, 0, 0);
  const uint64_t pushed = BytesPushed(0);
  ASSERT_TRUE(tables_[0]->ExchangeRest(0, 1, StateTable::RestSet::kNeeded).ok());
  const uint64_t rest = BytesPushed(0) - pushed;
  ASSERT_TRUE(tables_[0]->ExchangeRest(0, 1, StateTable::RestSet::kNeeded).ok());
  EXPECT_EQ(BytesPushed(0) - pushed, rest);  // nothing is left
  EXPECT_GT(rest, 0u);
  ASSERT_TRUE(tables_[1]->TakeAll().ok());
  ExpectFeature(1, 3, -2, 4);
  ExpectFeature(1, 500, 1, 2);
}

// Any number of workers exchange the rest at the same time.
TEST_F(SparseStore, NothingOfTheRestIsLostWhereWorkersMeet) {
  for (int i = 0; i < kWorkers; ++i) ASSERT_TRUE(tables_[i]->Connect().ok());
  std::vector<uint32_t> all(kFeatures);
  std::iota(all.begin(), all.end(), 0u);
  std::vector<std::thread> workers;
  for (size_t i = 0; i < kWorkers; ++i) {
    workers.emplace_back([&, i] {
      for (int round = 1; round <= 20; ++round) {
        for (const uint32_t feature : all) tables_[i]->state()[2 * feature + 1] += 1;  // a gradient
        tables_[i]->Touch(RowOf(all));
        EXPECT_TRUE(tables_[i]->ExchangeRest(0, 1, StateTable::RestSet::kNeeded).ok());
      }
      while (tables_[i]->TakePartialPushCount() > 0)
        EXPECT_TRUE(tables_[i]->ExchangeRest(0, 1, StateTable::RestSet::kTouched).ok());
    });
  }
  for (std::thread& worker : workers) worker.join();
  ASSERT_TRUE(tables_[0]->TakeAll().ok());
  for (const uint32_t feature : all)
    EXPECT_NEAR(tables_[0]->state()[2 * feature + 1], 20 * kWorkers, 0.01) << feature;
}

// A worker that has not met a feature lately knows less of it than a server's checkpoint.
TEST_F(SparseStore, AServerThatCameBackKeepsWhatIsNewer) {
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(tables_[i]->Connect().ok());
  Train(0, 3, -2, 4);
  Train(0, 100, 1, 2);
  Store(0);
  Train(1, 100, 3, 9);
  const std::vector<uint32_t> touched = {100};
  tables_[1]->Touch(RowOf(touched));
  ASSERT_TRUE(tables_[1]->ExchangeRest(0, 1, StateTable::RestSet::kTouched).ok());
  Train(0, 3, -3, 6);
  ASSERT_TRUE(tables_[0]->Rebase(0).ok());
  ASSERT_TRUE(tables_[0]->ExchangeRest(0, 1, StateTable::RestSet::kTouched).ok());
  ASSERT_TRUE(tables_[2]->Connect().ok());
  ExpectFeature(2, 3, -3, 6);
  EXPECT_NEAR(tables_[2]->state()[2 * 100 + 1], 11, 1e-5);
  EXPECT_NEAR(tables_[0]->state()[2 * 100 + 1], 11, 1e-5);
}

// Features of factorization machines that no replayed example has are merged in one step: to the
// same state, and with the same push, as in the steps that a replay needs.
TEST_F(SparseStore, WhatNoReplayReadsIsMergedToTheSameState) {
  const fm::FmLearner learner = *fm::FmLearner::Make({});
  for (int i = 0; i < kWorkers; ++i) {
    tables_[i] = StateTable::Make(clients_[i].get(), kFeatures, &learner, "auto").value();
    ASSERT_TRUE(tables_[i]->Connect().ok());
  }
  const auto train = [&](size_t worker, uint64_t feature, float weight, float squares) {
    float* const state = tables_[worker]->state() + feature * learner.width();
    for (const Slot& slot : learner.slots()) {
      state[slot.squares] += squares + static_cast<float>(slot.value) / 16;
      state[slot.value] = ValueOf(slot, weight, state[slot.squares]);
    }
  };
  const std::vector<uint32_t> features = {5, 6, 7};
  tables_[0]->Use(features);
  train(0, 5, 0.3f, 2);
  train(0, 6, -0.2f, 3);
  Exchange(0);
  for (const size_t worker : {1, 2}) {
    tables_[worker]->Use(features);
    train(worker, 5, 0.1f, 4);
    train(worker, 7, 0.4f, 1);
  }
  tables_[1]->Expect({features.data(), nullptr, 3, 1, nullptr}, UINT64_MAX);
  Fetch(1);
  Fetch(2);
  for (uint64_t at = 5 * learner.width(); at < 8 * learner.width(); ++at) {
    const float expected = tables_[1]->state()[at];
    EXPECT_NEAR(tables_[2]->state()[at], expected, 1e-5 * (1 + std::abs(expected))) << at;
  }
  ASSERT_TRUE(tables_[2]->Push(0, 1).ok());
  Exchange(0);
  for (uint64_t at = 5 * learner.width(); at < 8 * learner.width(); ++at) {
    const float expected = tables_[2]->state()[at];
    EXPECT_NEAR(tables_[0]->state()[at], expected, 1e-5 * (1 + std::abs(expected))) << at;
  }
}

// The bias of one of several classes is a feature among others: an example pushes back at others'
// change of it too.
TEST_F(SparseStore, TheBiasOfAClassIsReplayed) {
  const fm::FmLearner learner = *fm::FmLearner::Make({});
  constexpr uint64_t kBias = 9;
  const std::vector<uint32_t> features = {kBias};
  for (int i = 0; i < 2; ++i) {
    tables_[i] = StateTable::Make(clients_[i].get(), kFeatures, &learner, "auto").value();
    ASSERT_TRUE(tables_[i]->Connect().ok());
    tables_[i]->Use(features);
    float* const state = tables_[i]->state() + kBias * learner.width();
    const Slot& slot = learner.slots()[0];
    state[slot.squares] += 4;
    state[slot.value] = ValueOf(slot, 0.5f, state[slot.squares]);
  }
  Exchange(0);
  const Row row;  // without other features
  tables_[1]->Expect(row, kBias);
  ASSERT_TRUE(tables_[1]->Pull(0, 1, StateTable::RowSet::kUsed).ok());
  std::vector<float> scratch;
  const float before = tables_[1]->ReplayMargin(row, kBias, &scratch);
  tables_[1]->Replay({row, 0, 16}, kBias, &scratch);
  EXPECT_LT(tables_[1]->ReplayMargin(row, kBias, &scratch), before - 0.01f);
}

// Two workers exchange at a time: what was not taken of the second push goes with the next one.
TEST_F(SparseStore, APushThatWasOvertakenIsNotLost) {
  for (int i = 0; i < kWorkers; ++i) ASSERT_TRUE(tables_[i]->Connect().ok());
  Train(0, 3, -2, 4);
  Train(1, 4, 1, 2);
  Fetch(1);
  Exchange(0);
  ASSERT_TRUE(tables_[1]->Push(0, 1).ok());
  EXPECT_EQ(tables_[1]->TakePartialPushCount(), 1u);
  ExpectFeature(1, 3, -2, 4);
  Exchange(1);
  EXPECT_EQ(tables_[1]->TakePartialPushCount(), 0u);
  Exchange(0);
  ExpectFeature(0, 3, -2, 4);
  EXPECT_NEAR(tables_[0]->state()[2 * 4 + 1], 2, 1e-5);
}

// A server that came back has what an older checkpoint, or another life of this worker, had pushed.
TEST_F(SparseStore, PushesThatItHasNotSeenDoNotStay) {
  ASSERT_TRUE(tables_[0]->Connect().ok());
  Train(0, 3, -2, 4);
  Store(0);
  ASSERT_TRUE(tables_[1]->Connect().ok());
  Train(1, 3, -9, 30);
  Store(1);
  Train(0, 3, -3, 6);
  Store(0);
  EXPECT_EQ(tables_[0]->TakePartialPushCount(), 1u);
  Store(0);
  EXPECT_EQ(tables_[0]->TakePartialPushCount(), 0u);
  ASSERT_TRUE(tables_[2]->Connect().ok());
  ExpectFeature(2, 3, -3, 6);
  ExpectFeature(0, 3, -3, 6);
}

}  // namespace
}  // namespace shoal::learn::sparse
