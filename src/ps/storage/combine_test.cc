// The rule `combine` (types.h): on servers, and as a model that is explored exhaustively.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "ps/storage/optimizer_kernels.h"
#include "ps/testing/test_cluster.h"
#include "ps/testing/test_explorer.h"

namespace shoal::ps {
namespace {

TableSpec CombineSpec(uint32_t dim) {
  TableSpec spec = DenseSpec("c", 100, dim);
  spec.optimizer.kind = OptimizerKind::kCombine;
  return spec;
}

struct Pusher {
  Client* client;
  TableRef table;
  // Pushes `by` for all values of row 7, made when `seen` pushes were in it; gives the new row.
  std::vector<float> operator()(float by, float seen) const {
    std::vector<float> row(table.dim), delta(table.dim, by);
    delta.back() = seen;
    const Key key = 7;
    const auto ticket = client->PushPull(table, {&key, 1}, ConstRows(delta.data(), table.dim),
                                         Rows(row.data(), table.dim));
    EXPECT_TRUE(ticket.ok() && client->Wait(*ticket).ok());
    return row;
  }
};

TEST(Combine, APushThatHasNotSeenOthersCountsForLess) {
  Cluster cluster({});
  auto client = cluster.Connect(0);
  const auto table = client->CreateTable(CombineSpec(37));
  ASSERT_OK(table);
  const Pusher push{client.get(), *table};
  const auto expect = [&](float value, float count, const std::vector<float>& row) {
    for (size_t i = 0; i + 1 < row.size(); ++i) ASSERT_FLOAT_EQ(row[i], value);
    ASSERT_EQ(row.back(), count);
  };
  expect(36, 1, push(36, 0));
  expect(72, 2, push(36, 1));
  expect(72 + 9, 3, push(36, 1));
  expect(81 + 4, 4, push(36, 1));
  // From another incarnation of the server, in which there had been more pushes.
  expect(85, 5, push(36, 9));
  // What is no count is 0.
  for (const float count : {-1.0f, 1e30f, std::nanf("")})
    EXPECT_LT(push(36, count)[0], 85 + 36.0f / 25 * 4);
}

TEST(Combine, CountsGoRound) {
  EXPECT_EQ(CombineShare(0, kCombineCounts - 1), 0.25f);
  EXPECT_EQ(CombineShare(kCombineCounts - 1, kCombineCounts - 1), 1.0f);
  EXPECT_EQ(CombineCount(static_cast<float>(kCombineCounts - 1)), kCombineCounts - 1);
  EXPECT_EQ(CombineCount(static_cast<float>(kCombineCounts)), 0u);
  const OptimizerSpec spec = CombineSpec(2).optimizer;
  std::vector<float> row(16);
  row[1] = static_cast<float>(kCombineCounts - 1);
  const std::vector<float> delta = {3, static_cast<float>(kCombineCounts - 1)};
  float* rows[] = {row.data()};
  const float* deltas[] = {delta.data()};
  ApplyBatch({rows, deltas, nullptr, 1, RowLayout::Of(2, spec), &spec});
  EXPECT_EQ(row[0], 3);
  EXPECT_EQ(row[1], 0);
}

TEST(Combine, TablesThatCannotCountAreRefused) {
  Cluster cluster({});
  auto client = cluster.Connect(0);
  EXPECT_EQ(client->CreateTable(CombineSpec(1)).status().code(), Code::kInvalidArgument);
  TableSpec random = CombineSpec(4);
  random.initializer = {InitializerKind::kUniform, -1, 1, 5};
  EXPECT_EQ(client->CreateTable(random).status().code(), Code::kInvalidArgument);
  auto table = client->CreateTable(CombineSpec(4));
  ASSERT_OK(table);
  for (const bool push : {true, false}) {
    table->wire = {};
    (push ? table->wire.push : table->wire.pull) = ValueType::kBf16;
    const Key key = 7;
    std::vector<float> row(4);
    const auto ticket =
        client->PushPull(*table, {&key, 1}, ConstRows(row.data(), 4), Rows(row.data(), 4));
    const Status status = ticket.ok() ? client->Wait(*ticket) : ticket.status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.message();
  }
}

// Workers that each pull a row and push it all the way to the best value, 0, as they saw it; what
// was not taken they try again from the new row. In every order.
constexpr int kWorkers = 3;
constexpr int kPushes = 2;  // of each
constexpr int32_t kFar = 3'600'000;

struct Race {
  int32_t row = kFar;
  int32_t count = 0;
  std::array<int32_t, kWorkers> pulled{};
  std::array<int32_t, kWorkers> seen{};
  std::array<int32_t, kWorkers> pushes{};
  std::array<int32_t, kWorkers> has{};
};

struct RaceModel {
  bool counted = true;  // false: plain sums
  int32_t farthest = 0;

  void Steps(const Race& race, StateSpace<Race>* space) {
    for (int w = 0; w < kWorkers; ++w) {
      if (race.pushes[w] == kPushes) continue;
      Race next = race;
      if (race.has[w] == 0) {
        next.has[w] = 1;
        next.pulled[w] = race.row;
        next.seen[w] = race.count;
      } else {
        const int32_t unseen = counted ? race.count - race.seen[w] : 0;
        next.row -= race.pulled[w] / ((1 + unseen) * (1 + unseen));
        ++next.count;
        ++next.pushes[w];
        next.has[w] = 0;
        next.pulled[w] = next.seen[w] = 0;
        farthest = std::max(farthest, std::abs(next.row));
      }
      if (farthest > kFar) space->Fail("the row is farther away than it began");
      space->Add(next);
    }
  }
  void AtEnd(const Race& /*race*/, StateSpace<Race>* /*space*/) {}
};

TEST(CombineModel, NoOrderOfPushesGoesAwayFromTheBestValue) {
  StateSpace<Race> space;
  RaceModel model;
  EXPECT_EQ(space.Explore({}, model), "");
  EXPECT_GT(space.states(), 1000u);
  EXPECT_LT(model.farthest, kFar);
  StateSpace<Race> plain;
  RaceModel sums{false};
  EXPECT_NE(plain.Explore({}, sums), "") << "the model finds nothing wrong with sums either";
}

}  // namespace
}  // namespace shoal::ps
