// A worker's rows and their exchange with servers of this process.
#include "learn/word2vec/exchange/row_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "learn/word2vec/test_job.h"
#include "learn/word2vec/trainer/sampler.h"
#include "ps/client/admin.h"

namespace shoal::learn::word2vec {
namespace {

// Moves shard 0, in which are rows 0 and 256 of any table, to server 1, and waits until the client
// knows.
void MoveShardZero(TestJob* job, ps::Client* client, const ps::TableRef& table) {
  const auto admin = job->ConnectAdmin();
  ASSERT_TRUE(admin.ok());
  const auto moved = (*admin)->MoveShard(0, 1, 0);
  ASSERT_TRUE(moved.ok()) << moved.status().message();
  const TimePoint deadline = RealClock::Get()->Now() + std::chrono::seconds(20);
  while (client->ServerOf(table, 0) != 1 && RealClock::Get()->Now() < deadline)
    std::this_thread::yield();
  ASSERT_EQ(client->ServerOf(table, 0), 1);
}

Result<std::unique_ptr<RowCache>> CacheOf(ps::Client* client, uint64_t rows, uint32_t dim,
                                          const std::atomic<uint64_t>* lost = nullptr) {
  ps::TableRef tables[kTables];
  for (const TableKind kind : {kInput, kOutput}) {
    ps::TableSpec spec;
    spec.name = kind == kInput ? "input" : "output";
    spec.rows = rows;
    spec.dim = dim;
    TRY_ASSIGN(tables[kind], client->CreateTable(spec));
  }
  return RowCache::Make(client, *ChooseKernels("auto"), tables, lost);
}

void TestRestore(bool moves) {
  constexpr uint64_t kRows = 1000;
  TestJob job(2, 1, true);
  const std::unique_ptr<ps::Client> client = job.Connect(0);
  const auto cache = CacheOf(client.get(), kRows, 20, job.lost(0));
  ASSERT_TRUE(cache.ok());
  ASSERT_TRUE((*cache)->Load().ok());
  for (const TableKind kind : {kInput, kOutput}) {
    for (uint64_t row = 0; row < kRows; ++row)
      (*cache)->local(kind).row(row)[3] = static_cast<float>(row + 1);
  }
  ASSERT_TRUE((*cache)->FlushAll().ok());
  EXPECT_EQ(client->ServerOf((*cache)->table(kInput), 0), 0);
  if (moves) MoveShardZero(&job, client.get(), (*cache)->table(kInput));

  job.StartServer(1);
  const auto see = [&](TableKind kind) {
    std::vector<float> rows(kRows * 20);
    EXPECT_TRUE(client->PullRange((*cache)->table(kind), 0, kRows, ps::Rows(rows.data(), 20)).ok());
    return rows;
  };
  const std::vector<float> lost = see(kInput);
  EXPECT_EQ(lost[0 * 20 + 3], moves ? 0 : 1);
  EXPECT_EQ(lost[1 * 20 + 3], 0);
  EXPECT_EQ(lost[2 * 20 + 3], 3);
  EXPECT_TRUE((*cache)->suspended());
  ASSERT_TRUE((*cache)->Restore(1).ok());
  for (const TableKind kind : {kInput, kOutput}) {
    const std::vector<float> rows = see(kind);
    for (uint64_t row = 0; row < kRows; ++row)
      ASSERT_EQ(rows[row * 20 + 3], static_cast<float>(row + 1)) << row;
  }
}

TEST(RowCache, RestoreGivesAnEmptyServerItsRowsAndLeavesTheOthersAlone) { TestRestore(false); }

TEST(RowCache, RestoreGivesAnEmptyServerTheRowsThatCameToItAsWell) { TestRestore(true); }

// Of 8 workers: rows that have moved little are named to the caller and kept, and go when all are
// asked for.
TEST(RowExchange, LeavesOutRowsThatHaveNotMovedSignificantly) {
  constexpr uint64_t kRows = 50;
  TestJob job(1, 1, true);
  const std::unique_ptr<ps::Client> client = job.Connect(0);
  const auto cache = CacheOf(client.get(), kRows, 20);
  ASSERT_TRUE(cache.ok());
  ASSERT_TRUE((*cache)->Load().ok());
  Matrix& local = (*cache)->local(kInput);
  local.row(3)[0] += 5;
  local.row(7)[0] += 0.001f;
  const auto at_server = [&](uint64_t row) {
    float values[20];
    EXPECT_TRUE(client->PullRange((*cache)->table(kInput), row, 1, ps::Rows(values, 20)).ok());
    return values[0];
  };

  RowExchange exchange(cache->get(), ExchangePolicy(Params{}, 8));
  RowLists small;
  std::vector<uint32_t> inputs{7, 3}, outputs;
  ASSERT_TRUE(exchange.Issue(inputs, outputs, &small).ok());
  ASSERT_TRUE(exchange.Collect(0).ok());
  EXPECT_TRUE(inputs.empty());
  EXPECT_EQ(small[kInput], std::vector<uint32_t>{7});
  EXPECT_TRUE(small[kOutput].empty());
  EXPECT_GT(at_server(3), 0);
  EXPECT_EQ(at_server(7), 0);

  inputs = {7};
  ASSERT_TRUE(exchange.Issue(inputs, outputs).ok());
  ASSERT_TRUE(exchange.Collect(0).ok());
  EXPECT_EQ(at_server(7), 0.001f);
}

// What the servers have and what is still in L − B is all that the rows were moved by.
TEST(RowCache, WhatRoundingLosesStaysInTheRow) {
  constexpr uint64_t kRows = 50;
  constexpr uint32_t kDim = 40;
  for (const char* wire : {"bf16", "int8_bf16", "int8"}) {
    TestJob job(1, 1, true);
    const std::unique_ptr<ps::Client> client = job.Connect(0);
    const auto cache = CacheOf(client.get(), kRows, kDim);
    ASSERT_TRUE(cache.ok());
    const ps::TableRef exact = (*cache)->table(kInput);
    Params params;
    params.wire = wire;
    (*cache)->set_wire(WireOf(params, 1));
    ASSERT_TRUE((*cache)->Load().ok());
    Random random(7);
    std::vector<double> moved(kRows * kDim);
    double largest = 0;  // step
    std::vector<float> rows(kRows * kDim);
    for (int round = 0; round < 40; ++round) {
      for (size_t i = 0; i < moved.size(); ++i) {
        const float step = random.Unit() * 0.01f - 0.003f;
        largest = std::max(largest, std::abs(static_cast<double>(step)));
        (*cache)->local(kInput).row(i / kDim)[i % kDim] += step;
        moved[i] += static_cast<double>(step);
      }
      ASSERT_TRUE((*cache)->FlushAll().ok());
    }
    ASSERT_TRUE(client->PullRange(exact, 0, kRows, ps::Rows(rows.data(), kDim)).ok());
    for (size_t i = 0; i < moved.size(); ++i) {
      const double kept = static_cast<double>((*cache)->local(kInput).row(i / kDim)[i % kDim]) -
                          static_cast<double>((*cache)->base(kInput).row(i / kDim)[i % kDim]);
      ASSERT_NEAR(rows[i] + kept, moved[i], 2e-6) << wire;
      ASSERT_LT(std::abs(kept), 2 * largest / 127) << wire;
    }
  }
}

}  // namespace
}  // namespace shoal::learn::word2vec
