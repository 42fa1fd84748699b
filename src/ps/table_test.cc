// Tables against std::map, snapshots against a second map, kernels against their formulas, on every
// instruction set of the machine.
#include "ps/table.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "ps/initializer.h"
#include "ps/kernels.h"

namespace shoal::ps {
namespace {

const Partition kTwoServers(16, {1, 1});

TableSpec SpecOf(bool sparse, OptimizerKind kind) {
  TableSpec spec;
  spec.name = "t";
  spec.dim = 5;
  spec.rows = 400;
  spec.key_space = sparse ? KeySpace::kSparse : KeySpace::kDense;
  spec.optimizer = {kind, 0.5f, 1e-3f};
  spec.initializer = {InitializerKind::kUniform, -1, 1, 5};
  return spec;
}

using Row = std::vector<float>;

// What the table should be.
struct Model {
  TableSpec spec;
  std::map<Key, Row> rows;
  Row& At(Key key) {
    auto& row = rows[key];
    if (row.empty()) {
      row.resize(2 * spec.dim);
      InitializeRow(spec.initializer, key, spec.dim, row.data());
    }
    return row;
  }
  void Push(Key key, float g) {
    Row& row = At(key);
    for (size_t i = 0; i < spec.dim; ++i) {
      float& w = row[i];
      float& s = row[spec.dim + i];
      switch (spec.optimizer.kind) {
        case OptimizerKind::kAdd:
          w += g;
          break;
        case OptimizerKind::kSgd:
          w -= spec.optimizer.lr * g;
          break;
        case OptimizerKind::kAdagrad:
          s += g * g;
          w -= spec.optimizer.lr * g / (std::sqrt(s) + spec.optimizer.eps);
      }
    }
  }
};

// Keys of server 0 in kTwoServers: even shards.
Key OwnKey(bool sparse, uint64_t draw) {
  if (!sparse) return draw % 200 * 2;
  for (Key key = draw % 100 * 1'000'003;; ++key) {
    if (kTwoServers.ShardOf(KeySpace::kSparse, key) % 2 == 0) return key;
  }
}

struct Harness {
  explicit Harness(TableSpec spec)
      : model{spec, {}}, table(spec, &kTwoServers, Owner{0, 0}, &arena) {}
  // One batch of pushes of `g` to random keys, mirrored in the models.
  void Push(std::mt19937* random, WriteMode mode, Model* snapshot) {
    const bool sparse = model.spec.key_space == KeySpace::kSparse;
    KeyBatch batch;
    batch.n = 1 + (*random)() % 40;
    const float g = static_cast<float>((*random)() % 8);
    const Row delta(model.spec.dim, g);
    std::vector<Row> out(batch.n, Row(model.spec.dim));
    for (size_t i = 0; i < batch.n; ++i) {
      batch.keys[i] = OwnKey(sparse, (*random)());
      batch.deltas[i] = delta.data();
      batch.out[i] = out[i].data();
    }
    table.Push(batch, true, mode);
    for (size_t i = 0; i < batch.n; ++i) {
      model.Push(batch.keys[i], g);
      if (snapshot != nullptr) snapshot->Push(batch.keys[i], g);
      const Row& want = model.At(batch.keys[i]);
      for (size_t d = 0; d < model.spec.dim; ++d) EXPECT_NEAR(out[i][d], want[d], 1e-4);
    }
  }
  void ExpectLive() {
    for (const auto& [key, row] : model.rows) {
      KeyBatch batch;
      Row got(model.spec.dim);
      batch.n = 1;
      batch.keys[0] = key;
      batch.out[0] = got.data();
      table.Pull(batch);
      for (size_t d = 0; d < model.spec.dim; ++d) EXPECT_NEAR(got[d], row[d], 1e-4) << key;
    }
  }
  // The rows of the frozen snapshot; dense tables hold untouched ones, too.
  std::map<Key, Row> TakeSnapshot() {
    std::map<Key, Row> taken;
    std::vector<Key> keys;
    std::vector<float> rows;
    for (uint32_t shard = 0; shard < kTwoServers.shards(); ++shard) {
      for (size_t block = 0; block < table.SnapshotBlocks(shard); ++block) {
        table.TakeSnapshotBlock(shard, block, &keys, &rows);
        const size_t floats = table.saved_floats();
        for (size_t i = 0; i < keys.size(); ++i) {
          taken[keys[i]] = Row(rows.begin() + static_cast<long>(i * floats),
                               rows.begin() + static_cast<long>((i + 1) * floats));
        }
      }
    }
    return taken;
  }

  RowArena arena;
  Model model;
  Table table;
};

class TableProperty : public ::testing::TestWithParam<std::tuple<bool, OptimizerKind>> {};

TEST_P(TableProperty, IsWhatAMapWouldBeAndItsSnapshotWhatTheMarkersSay) {
  const auto [sparse, kind] = GetParam();
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Harness harness(SpecOf(sparse, kind));
    for (int i = 0; i < 10; ++i) harness.Push(&random, WriteMode::kPlain, nullptr);
    for (int round = 0; round < 3; ++round) {
      Model snapshot = harness.model;
      harness.table.BeginSnapshot();
      for (int i = 0; i < 20; ++i) {
        const bool both = random() % 2 == 0;
        harness.Push(&random, both ? WriteMode::kBoth : WriteMode::kLiveOnly,
                     both ? &snapshot : nullptr);
      }
      harness.table.Freeze();
      for (int i = 0; i < 5; ++i) harness.Push(&random, WriteMode::kLiveOnly, nullptr);
      const auto taken = harness.TakeSnapshot();
      for (int i = 0; i < 5; ++i) harness.Push(&random, WriteMode::kLiveOnly, nullptr);
      EXPECT_EQ(taken.size(), sparse ? snapshot.rows.size() : 200u);
      for (const auto& [key, row] : taken) {
        const Row& want = snapshot.At(key);
        for (size_t i = 0; i < row.size(); ++i) ASSERT_NEAR(row[i], want[i], 1e-4) << key;
      }
      harness.table.EndSnapshot();
    }
    harness.ExpectLive();
  }
}

TEST_P(TableProperty, RestoresWhatASnapshotHeld) {
  const auto [sparse, kind] = GetParam();
  std::mt19937 random(3);
  Harness harness(SpecOf(sparse, kind)), other(SpecOf(sparse, kind));
  for (int i = 0; i < 10; ++i) harness.Push(&random, WriteMode::kPlain, nullptr);
  harness.table.BeginSnapshot();
  harness.table.Freeze();
  for (const auto& [key, row] : harness.TakeSnapshot()) other.table.RestoreRow(key, row.data());
  other.model = harness.model;
  other.ExpectLive();
  // The optimizer's state came along: both go on alike.
  std::mt19937 a(9), b(9);
  harness.table.EndSnapshot();
  harness.Push(&a, WriteMode::kPlain, nullptr);
  other.Push(&b, WriteMode::kPlain, nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, TableProperty,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Values(OptimizerKind::kAdd,
                                                              OptimizerKind::kSgd,
                                                              OptimizerKind::kAdagrad)));

TEST(Table, RefusesKeysThatAreNotItsOwn) {
  RowArena arena;
  const Table dense(SpecOf(false, OptimizerKind::kAdd), &kTwoServers, Owner{0, 0}, &arena);
  EXPECT_TRUE(dense.Check(std::vector<Key>{0, 398}).ok());
  EXPECT_EQ(dense.Check(std::vector<Key>{400}).code(), Code::kOutOfRange);
  EXPECT_EQ(dense.Check(std::vector<Key>{UINT64_MAX}).code(), Code::kOutOfRange);
  EXPECT_EQ(dense.Check(std::vector<Key>{1}).code(), Code::kFailedPrecondition);
}

TEST(Table, RowsWiderThanABlockWork) {
  auto spec = SpecOf(true, OptimizerKind::kAdagrad);
  spec.dim = 100'000;
  Harness harness(spec);
  std::mt19937 random(1);
  harness.Push(&random, WriteMode::kPlain, nullptr);
  harness.table.BeginSnapshot();
  harness.Push(&random, WriteMode::kLiveOnly, nullptr);
  harness.table.Freeze();
  EXPECT_FALSE(harness.TakeSnapshot().empty());
}

RC_GTEST_PROP(PartitionProperty, EveryShardHasOneOwnerAndNoneIsFarAboveTheMean,
              (const std::vector<uint8_t>& lanes_drawn)) {
  std::vector<uint32_t> lanes = {1u};
  for (const uint8_t lane : lanes_drawn) lanes.push_back(1u + lane % 4u);
  if (lanes.size() > 20) lanes.resize(20);
  const Partition partition(256, lanes);
  std::vector<uint64_t> dense(lanes.size()), sparse(lanes.size());
  for (Key key = 0; key < 51'200; ++key) {
    for (const auto space : {KeySpace::kDense, KeySpace::kSparse}) {
      const Owner owner = partition.OwnerOf(partition.ShardOf(space, key));
      RC_ASSERT(owner.server < lanes.size());
      RC_ASSERT(owner.lane < lanes[owner.server]);
      ++(space == KeySpace::kDense ? dense : sparse)[owner.server];
    }
  }
  const double mean = 51'200.0 / static_cast<double>(lanes.size());
  for (const uint64_t count : dense) RC_ASSERT(static_cast<double>(count) < 1.10 * mean);
  for (const uint64_t count : sparse) RC_ASSERT(static_cast<double>(count) < 1.15 * mean);
}

// |got - want| in ulp of the largest operand.
double UlpOff(float got, double want, double scale) {
  const double ulp = std::ldexp(1.0, std::ilogb(std::max(std::abs(scale), 1e-30)) - 23);
  return std::abs(static_cast<double>(got) - want) / ulp;
}

TEST(Kernels, WithinFourUlpOfTheFormulasOnEveryTarget) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> draw(-2, 2);
  size_t targets = 0;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    ++targets;
    for (const auto kind : {OptimizerKind::kAdd, OptimizerKind::kSgd, OptimizerKind::kAdagrad}) {
      for (size_t dim = 1; dim < 70; ++dim) {
        const size_t padded = (dim + 15) / 16 * 16;
        Row row(2 * padded), delta(dim), out(dim);
        for (float& value : row) value = draw(random);
        for (float& value : delta) value = draw(random);
        for (size_t i = 0; i < dim; ++i) row[padded + i] = std::abs(row[padded + i]);
        const Row before = row;
        float* rows[] = {row.data()};
        const float* deltas[] = {delta.data()};
        float* outs[] = {out.data()};
        const OptimizerSpec spec{kind, 0.3f, 1e-6f};
        ApplyBatch({rows, deltas, outs, 1, dim, padded, spec});
        for (size_t i = 0; i < dim; ++i) {
          const double w = before[i], g = delta[i], s = double{before[padded + i]} + g * g;
          const double step = kind == OptimizerKind::kAdd ? -g
                              : kind == OptimizerKind::kSgd
                                  ? spec.lr * g
                                  : spec.lr * g / (std::sqrt(s) + spec.eps);
          const double scale = std::max(std::abs(w), std::abs(step));
          ASSERT_LE(UlpOff(row[i], w - step, scale), 4) << hwy::TargetName(target) << " " << dim;
          ASSERT_EQ(out[i], row[i]);
          const bool has_state = kind == OptimizerKind::kAdagrad;
          ASSERT_LE(has_state ? UlpOff(row[padded + i], s, s) : 0.0, 2);
        }
        for (size_t i = dim; i < padded; ++i) ASSERT_EQ(row[i], before[i]) << "beyond the row";
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  EXPECT_GE(targets, 1u);
}

TEST(Initializer, IsAFunctionOfSeedKeyAndElement) {
  const InitializerSpec spec{InitializerKind::kUniform, -1, 3, 42};
  Row a(100), b(101), c(100);
  InitializeRow(spec, 7, 100, a.data());
  InitializeRow(spec, 7, 101, b.data());
  InitializeRow(spec, 8, 100, c.data());
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
  EXPECT_NE(a, c);
  double sum = 0;
  for (Key key = 0; key < 1000; ++key) {
    InitializeRow(spec, key, 100, a.data());
    for (const float value : a) {
      ASSERT_GE(value, -1);
      ASSERT_LT(value, 3);
      sum += value;
    }
  }
  EXPECT_NEAR(sum / 100'000, 1.0, 0.02);
}

}  // namespace
}  // namespace shoal::ps
