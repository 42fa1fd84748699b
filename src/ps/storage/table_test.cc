// Tables against std::map, snapshots against a second map, kernels against their formulas in
// double, on every instruction set of the machine.
#include "ps/storage/table.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "base/bytes.h"
#include "ps/storage/initializer.h"
#include "ps/storage/key_index.h"
#include "ps/storage/optimizer_kernels.h"

namespace shoal::ps {
namespace {

const Partition kTwoServers(16, {1, 1});

// Numbers at which every term of the formulas matters.
OptimizerSpec OptimizerOf(OptimizerKind kind) {
  OptimizerSpec spec;
  spec.kind = kind;
  spec.lr = 0.5f;
  spec.eps = 1e-3f;
  spec.momentum = 0.7f;
  spec.beta1 = 0.8f;
  spec.beta2 = 0.95f;
  spec.beta = 0.5f;
  spec.l1 = 0.3f;
  spec.l2 = 0.1f;
  return spec;
}

constexpr auto kAllKinds = {OptimizerKind::kAdd,      OptimizerKind::kSgd,  OptimizerKind::kAdagrad,
                            OptimizerKind::kMomentum, OptimizerKind::kAdam, OptimizerKind::kFtrl};
// Those whose tables hold what every other does, and not a formula for each element.
constexpr auto kTableKinds = {
    OptimizerKind::kAdd,  OptimizerKind::kSgd,  OptimizerKind::kAdagrad, OptimizerKind::kMomentum,
    OptimizerKind::kAdam, OptimizerKind::kFtrl, OptimizerKind::kCombine};

TableSpec SpecOf(bool sparse, OptimizerKind kind) {
  TableSpec spec;
  spec.name = "t";
  spec.dim = 5;
  spec.rows = 400;
  spec.key_space = sparse ? KeySpace::kSparse : KeySpace::kDense;
  spec.optimizer = OptimizerOf(kind);
  if (kind != OptimizerKind::kCombine) spec.initializer = {InitializerKind::kUniform, -1, 1, 5};
  return spec;
}

using Row = std::vector<float>;

// One element of a row, and the formulas of types.h in double. `step` is what w moved by.
struct Element {
  double w = 0, a = 0, b = 0;
  double step = 0;
};

void Apply(const OptimizerSpec& spec, double g, uint32_t t, Element* x) {
  const double before = x->w, lr = spec.lr, b1 = spec.beta1, b2 = spec.beta2;
  switch (spec.kind) {
    case OptimizerKind::kAdd:
      x->w += g;
      break;
    case OptimizerKind::kSgd:
      x->w -= lr * g;
      break;
    case OptimizerKind::kAdagrad:
      x->a += g * g;
      x->w -= lr * g / (std::sqrt(x->a) + spec.eps);
      break;
    case OptimizerKind::kMomentum:
      x->a = spec.momentum * x->a + g;
      x->w -= lr * x->a;
      break;
    case OptimizerKind::kAdam:
      x->a = b1 * x->a + (1 - b1) * g;
      x->b = b2 * x->b + (1 - b2) * g * g;
      x->w -= lr * (x->a / (1 - std::pow(b1, t))) /
              (std::sqrt(x->b / (1 - std::pow(b2, t))) + spec.eps);
      break;
    case OptimizerKind::kFtrl: {
      const double sigma = (std::sqrt(x->b + g * g) - std::sqrt(x->b)) / lr;
      x->a += g - sigma * x->w;
      x->b += g * g;
      const double sign = x->a < 0 ? -1 : 1;
      x->w = std::abs(x->a) <= spec.l1
                 ? 0
                 : -(x->a - sign * spec.l1) / ((spec.beta + std::sqrt(x->b)) / lr + spec.l2);
      break;
    }
    case OptimizerKind::kCombine:
    case OptimizerKind::kFunction:
      break;
  }
  x->step = x->w - before;
}

// What the table should be: values, planes of state, count of pushes, one after the other.
struct Model {
  TableSpec spec;
  std::map<Key, std::vector<double>> rows;
  RowLayout layout() const { return RowLayout::Of(spec.dim, spec.optimizer); }
  std::vector<double>& At(Key key) {
    auto& row = rows[key];
    if (!row.empty()) return row;
    Row first(spec.dim);
    InitializeRow(spec.initializer, key, spec.dim, first.data());
    row.assign(first.begin(), first.end());
    row.resize(layout().saved_floats());
    if (spec.optimizer.kind == OptimizerKind::kFtrl) {
      const auto& o = spec.optimizer;
      for (size_t i = 0; i < spec.dim; ++i) {
        row[spec.dim + i] = -(row[i] * (o.beta / o.lr + o.l2) + (row[i] < 0 ? -o.l1 : o.l1));
      }
    }
    return row;
  }
  void Push(Key key, float g) {
    auto& row = At(key);
    const size_t dim = spec.dim, planes = layout().planes;
    if (spec.optimizer.kind == OptimizerKind::kCombine) {
      const double count = row[dim - 1];
      const float share = CombineShare(static_cast<uint32_t>(count), static_cast<uint32_t>(g));
      for (size_t i = 0; i + 1 < dim; ++i) row[i] += double{share} * static_cast<double>(g);
      row[dim - 1] = count + 1;
      return;
    }
    uint32_t t = 0;
    if (layout().step != 0) t = static_cast<uint32_t>(row.back() += 1);
    for (size_t i = 0; i < dim; ++i) {
      Element x{row[i], planes > 0 ? row[dim + i] : 0, planes > 1 ? row[2 * dim + i] : 0};
      Apply(spec.optimizer, g, t, &x);
      row[i] = x.w;
      if (planes > 0) row[dim + i] = x.a;
      if (planes > 1) row[2 * dim + i] = x.b;
    }
  }
};

// A saved row as numbers: the count is a u32 in a float's bits.
std::vector<double> Numbers(const TableSpec& spec, const float* saved) {
  const RowLayout layout = RowLayout::Of(spec.dim, spec.optimizer);
  std::vector<double> numbers(saved, saved + layout.saved_floats());
  if (layout.step != 0) numbers.back() = std::bit_cast<uint32_t>(saved[numbers.size() - 1]);
  return numbers;
}

// Keys of server 0 in kTwoServers: even shards.
const std::vector<ShardState> kOfTheFirst = [] {
  std::vector<ShardState> states(kTwoServers.shards());
  for (uint32_t shard = 0; shard < states.size(); ++shard) {
    if (kTwoServers.OwnerOf(shard) == Owner{0, 0}) states[shard] = ShardState::kHere;
  }
  return states;
}();

Key OwnKey(bool sparse, uint64_t draw) {
  const auto space = sparse ? KeySpace::kSparse : KeySpace::kDense;
  for (Key key = sparse ? draw % 100 * 1'000'003 : draw % 400;; ++key) {
    if (kTwoServers.ShardOf(space, key % (sparse ? key + 1 : 400)) % 2 == 0) {
      return sparse ? key : key % 400;
    }
  }
}

struct Harness {
  explicit Harness(TableSpec spec)
      : model{spec, {}}, table(spec, {&kTwoServers, &kOfTheFirst, nullptr, 1}, &arena) {}
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
    EXPECT_TRUE(table.Push(batch, true, mode, {}).ok());
    for (size_t i = 0; i < batch.n; ++i) {
      model.Push(batch.keys[i], g);
      if (snapshot != nullptr) snapshot->Push(batch.keys[i], g);
      // A key may come twice in a batch; what came back is the row after its own push.
      const auto& want = model.At(batch.keys[i]);
      for (size_t d = 0; d < model.spec.dim; ++d) EXPECT_NEAR(out[i][d], want[d], 1e-3);
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
      for (size_t d = 0; d < model.spec.dim; ++d) EXPECT_NEAR(got[d], row[d], 1e-3) << key;
    }
  }
  // The rows of the frozen snapshot, or those changed since; dense tables hold untouched ones, too.
  std::map<Key, Row> TakeSnapshot(std::optional<uint8_t> after = std::nullopt) {
    std::map<Key, Row> taken;
    SavedRows saved;
    const auto& [keys, rows] = saved;
    for (uint32_t shard = 0; shard < kTwoServers.shards(); ++shard) {
      for (size_t block = 0; block < table.SnapshotBlocks(shard); ++block) {
        saved.clear();
        table.TakeSnapshotBlock(shard, block, after, &saved);
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
    // As a chain of checkpoints holds them: a whole one, then what changed since the last that was
    // committed.
    std::map<Key, Row> taken;
    std::optional<uint8_t> committed;
    for (uint8_t round = 1; round <= 6; ++round) {
      const int pushes = round % 3 == 1 ? 20 : 1;
      harness.table.SetCutInterval(round);
      for (int i = 0; i < pushes; ++i) harness.Push(&random, WriteMode::kPlain, nullptr);
      Model snapshot = harness.model;
      harness.table.BeginSnapshot();
      for (int i = 0; i < pushes; ++i) {
        const bool both = random() % 2 == 0;
        harness.Push(&random, both ? WriteMode::kBoth : WriteMode::kLiveOnly,
                     both ? &snapshot : nullptr);
      }
      harness.table.Freeze();
      for (int i = 0; i < pushes / 4; ++i) harness.Push(&random, WriteMode::kLiveOnly, nullptr);
      const size_t changed = committed.has_value() ? harness.table.CountChanged(*committed) : 200;
      const auto delta = harness.TakeSnapshot(committed);
      EXPECT_LE(delta.size(), changed);
      if (pushes == 1 && committed.has_value()) {
        EXPECT_LE(delta.size(), 240u);  // of six rounds at most
      }
      const auto before = taken;
      for (const auto& [key, row] : delta) taken[key] = row;
      for (int i = 0; i < 5; ++i) harness.Push(&random, WriteMode::kLiveOnly, nullptr);
      EXPECT_EQ(taken.size(), sparse ? snapshot.rows.size() : 200u);
      for (const auto& [key, row] : taken) {
        const auto& want = snapshot.At(key);
        const auto numbers = Numbers(snapshot.spec, row.data());
        ASSERT_EQ(numbers.size(), want.size());
        for (size_t i = 0; i < want.size(); ++i) {
          ASSERT_NEAR(numbers[i], want[i], 1e-3 + 1e-5 * std::abs(want[i])) << key << " " << i;
        }
      }
      harness.table.EndSnapshot();
      if (random() % 3 != 0) {
        committed = round;
      } else if (committed.has_value()) {
        taken = before;  // it was never committed: the next one stands on the one before
      } else {
        taken.clear();
      }
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
  const auto taken = harness.TakeSnapshot();
  for (const auto& [key, row] : taken) other.table.RestoreRow(key, row.data());
  other.model = harness.model;
  other.ExpectLive();
  // To the bit, state and all.
  other.table.BeginSnapshot();
  other.table.Freeze();
  const auto again = other.TakeSnapshot();
  other.table.EndSnapshot();
  ASSERT_EQ(taken.size(), again.size());
  for (const auto& [key, row] : taken) {
    ASSERT_EQ(std::memcmp(row.data(), again.at(key).data(), row.size() * sizeof(float)), 0);
  }
  // The optimizer's state came along: both go on alike.
  std::mt19937 a(9), b(9);
  harness.table.EndSnapshot();
  harness.Push(&a, WriteMode::kPlain, nullptr);
  other.Push(&b, WriteMode::kPlain, nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, TableProperty,
                         ::testing::Combine(::testing::Bool(), ::testing::ValuesIn(kTableKinds)));

TEST(Table, RefusesKeysThatAreNotItsOwn) {
  RowArena arena;
  const Table dense(SpecOf(false, OptimizerKind::kAdd), {&kTwoServers, &kOfTheFirst, nullptr},
                    &arena);
  const Key own = OwnKey(false, 0), other = kTwoServers.DenseKey(1, 0);
  EXPECT_TRUE(dense.Check(std::vector<Key>{own, kTwoServers.DenseKey(14, 24)}).ok());
  EXPECT_EQ(dense.Check(std::vector<Key>{400}).code(), Code::kOutOfRange);
  EXPECT_EQ(dense.Check(std::vector<Key>{UINT64_MAX}).code(), Code::kOutOfRange);
  EXPECT_EQ(dense.Check(std::vector<Key>{other}).code(), Code::kFailedPrecondition);
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

// Servers with 1 to 4 lanes each.
std::vector<uint32_t> DrawLanes() {
  const auto drawn = *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange(1u, 5u));
  std::vector<uint32_t> lanes = {1u};
  lanes.insert(lanes.end(), drawn.begin(), drawn.end());
  if (lanes.size() > 12) lanes.resize(12);
  return lanes;
}

RC_GTEST_PROP(PartitionProperty, DenseRowsAndSlotsAreOneAndTheSame, ()) {
  const Partition partition(1u << *rc::gen::inRange(0, 10), {1});
  const uint64_t rows = *rc::gen::inRange<uint64_t>(1, 5000);
  std::vector<uint64_t> slots(partition.shards());
  for (Key key = 0; key < rows; ++key) {
    const uint32_t shard = partition.ShardOf(KeySpace::kDense, key);
    RC_ASSERT(partition.DenseKey(shard, key >> partition.shard_bits()) == key);
    RC_ASSERT(key >> partition.shard_bits() == slots[shard]++);
  }
  for (uint32_t shard = 0; shard < partition.shards(); ++shard) {
    RC_ASSERT(partition.DenseSlots(rows, shard) == slots[shard]);
  }
}

// Whatever the keys look like: no server has 10 % more of them than the mean, nor 10 % less.
RC_GTEST_PROP(PartitionProperty, AnyDistributionOfKeysIsSpreadWithinTenPercent, ()) {
  const auto lanes = DrawLanes();
  const Partition partition(256, lanes);
  enum Kind { kSmall, kStrided, kStrings, kZipf, kClustered, kKinds };
  const int kind = *rc::gen::inRange(0, static_cast<int>(kKinds));
  std::mt19937_64 random(*rc::gen::arbitrary<uint32_t>());
  const uint32_t stride = 1u << *rc::gen::inRange(0, 12);
  const Key base = (random() >> 24) & ~Key{0xfff};
  const auto draw = [&](uint64_t i) -> Key {
    switch (kind) {
      case kSmall:
        return i;
      case kStrided:
        return i * stride;
      case kStrings: {
        const std::string name = "user:" + std::to_string(i);
        return Crc32c(name.data(), name.size()) * 0x100000001ull;
      }
      case kZipf: {  // ranks, the low ones often: rows count once each
        const double u = std::generate_canonical<double, 53>(random);
        return static_cast<Key>(std::exp(u * std::log(1e9)));
      }
      default:
        return base + (i / 64) * 1'000'003 + i % 64;
    }
  };
  std::vector<Key> keys;
  for (uint64_t i = 0; i < 60'000; ++i) keys.push_back(draw(i));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (const auto space : {KeySpace::kDense, KeySpace::kSparse}) {
    std::vector<double> count(lanes.size());
    for (const Key key : keys) {
      const Owner owner = partition.OwnerOf(partition.ShardOf(space, key));
      RC_ASSERT(owner.server < lanes.size());
      RC_ASSERT(owner.lane < lanes[owner.server]);
      count[owner.server] += 1;
    }
    const double mean = static_cast<double>(keys.size()) / static_cast<double>(lanes.size());
    for (const double n : count) RC_ASSERT(n > 0.90 * mean && n < 1.10 * mean);
  }
}

// |got - want| in ulp of the largest operand.
double UlpOff(float got, double want, double scale) {
  const double ulp = std::ldexp(1.0, std::ilogb(std::max(std::abs(scale), 1e-30)) - 23);
  return std::abs(static_cast<double>(got) - want) / ulp;
}

// One row of `dim` random elements, pushed to four times so that states and counts have grown;
// every push is compared with the formula on what the row was before it.
struct KernelCase {
  OptimizerSpec spec;
  size_t dim;
  double ulp;  // allowed
};

void CheckKernel(const KernelCase& test, std::mt19937* random, std::vector<float>* all) {
  std::uniform_real_distribution<float> draw(-2, 2);
  const auto& [spec, dim, ulp] = test;
  const RowLayout layout = RowLayout::Of(dim, spec);
  Row row(layout.floats + 16, 0.0f), delta(dim), out(dim);
  for (size_t i = 0; i < dim; ++i) row[i] = draw(*random);
  StartState(spec, layout, row.data());
  float* rows[] = {row.data()};
  const float* deltas[] = {delta.data()};
  float* outs[] = {out.data()};
  for (uint32_t t = 1; t <= 4; ++t) {
    for (float& value : delta) value = draw(*random);
    if (t == 3) delta[0] = 0;
    const Row before = row;
    ApplyBatch({rows, deltas, outs, 1, layout, &spec});
    const float* a = row.data() + layout.stride;
    for (size_t i = 0; i < dim; ++i) {
      Element x{before[i], layout.planes > 0 ? before[layout.stride + i] : 0,
                layout.planes > 1 ? before[2 * layout.stride + i] : 0};
      const Element old = x;
      Apply(spec, delta[i], t, &x);
      const double g = delta[i];
      // The largest operand: w, or the step, or, where the state's terms cancelled, what the step
      // would be without.
      double step = std::abs(x.step);
      if (spec.kind == OptimizerKind::kFtrl) {
        step = std::max(std::abs(x.a), double{spec.l1}) /
               ((spec.beta + std::sqrt(x.b)) / spec.lr + spec.l2);
      }
      if (layout.planes > 0 && spec.kind != OptimizerKind::kAdagrad) {
        const double share = spec.kind == OptimizerKind::kAdam ? 1 - spec.beta1 : 1;
        step *= std::max({1.0, std::abs(old.a / x.a), std::abs(share * g / x.a)});
      }
      const double scale = std::max({std::abs(old.w), std::abs(x.w), step});
      ASSERT_LE(UlpOff(row[i], x.w, scale), ulp) << "element " << i << " of " << dim << " at " << t;
      ASSERT_EQ(out[i], row[i]);
      const double state = std::max({std::abs(old.a), std::abs(x.a), std::abs(g)});
      ASSERT_LE(layout.planes > 0 ? UlpOff(a[i], x.a, state) : 0.0, 4);
      ASSERT_LE(layout.planes > 1 ? UlpOff(a[layout.stride + i], x.b, x.b) : 0.0, 2);
    }
    for (size_t i = 0; i < row.size(); ++i) {
      const bool in_plane =
          i < layout.floats && i / layout.stride <= layout.planes && i % layout.stride < dim;
      if (in_plane || (layout.step != 0 && i == layout.step)) continue;
      ASSERT_EQ(row[i], before[i]) << "beyond the row";
    }
    ASSERT_EQ(layout.step != 0 ? std::bit_cast<uint32_t>(row[layout.step]) : t, t);
  }
  all->insert(all->end(), row.begin(), row.end());
}

TEST(Kernels, WithinSixUlpOfTheFormulasOnEveryTarget) {
  size_t targets = 0;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    ++targets;
    SCOPED_TRACE(hwy::TargetName(target));
    std::mt19937 random(11);
    std::vector<float> all;
    for (const auto kind : kAllKinds) {
      SCOPED_TRACE(static_cast<int>(kind));
      for (size_t dim = 1; dim < 70; ++dim) {
        const bool adam = kind == OptimizerKind::kAdam;
        CheckKernel({OptimizerOf(kind), dim, adam ? 6.0 : 4.0}, &random, &all);
        if (::testing::Test::HasFatalFailure()) break;
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  EXPECT_GE(targets, 1u);
}

// One row's elements are worked on as vectors and, at the end, one by one: both give the same.
TEST(Kernels, TheTailIsWhatTheVectorsAre) {
  for (const auto kind : kAllKinds) {
    const OptimizerSpec spec = OptimizerOf(kind);
    constexpr size_t kDim = 67;
    const RowLayout layout = RowLayout::Of(kDim, spec);
    Row row(layout.floats, 0.0f);
    for (size_t i = 0; i < kDim; ++i) row[i] = 0.25f;
    StartState(spec, layout, row.data());
    const Row delta(kDim, 0.7f);
    float* rows[] = {row.data()};
    const float* deltas[] = {delta.data()};
    for (int t = 0; t < 5; ++t) ApplyBatch({rows, deltas, nullptr, 1, layout, &spec});
    for (size_t i = 1; i < kDim; ++i) ASSERT_EQ(row[i], row[0]) << static_cast<int>(kind);
  }
}

TEST(Kernels, FtrlForgetsNothingOfItsFirstValueAndMakesSmallWeightsZero) {
  const OptimizerSpec spec = OptimizerOf(OptimizerKind::kFtrl);
  const RowLayout layout = RowLayout::Of(1, spec);
  Row row(layout.floats, 0.0f);
  row[0] = 0.5f;
  StartState(spec, layout, row.data());
  const float nothing = 0, down = 1e-3f;
  float* rows[] = {row.data()};
  const float* deltas[] = {&nothing};
  ApplyBatch({rows, deltas, nullptr, 1, layout, &spec});
  EXPECT_NEAR(row[0], 0.5f, 1e-6);
  Row zero(layout.floats, 0.0f);
  rows[0] = zero.data();
  deltas[0] = &down;
  for (int i = 0; i < 100; ++i) ApplyBatch({rows, deltas, nullptr, 1, layout, &spec});
  EXPECT_EQ(zero[0], 0.0f) << "100 gradients of 0.001 stay below l1";
  for (int i = 0; i < 400; ++i) ApplyBatch({rows, deltas, nullptr, 1, layout, &spec});
  EXPECT_LT(zero[0], 0.0f);
}

TEST(Kernels, CopiesRowsOfEveryWidthAndNothingBesides) {
  constexpr size_t kRows = 21;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (const size_t dim : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 100, 511, 512, 513, 700}) {
      std::vector<float> table(kRows * dim);
      for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i + 1);
      std::vector<float> gathered(kRows * dim + 1, -1.0f), copied = gathered, expected = gathered;
      std::array<const float*, kRows> rows;
      std::array<float*, kRows> out;
      for (size_t i = 0; i < kRows; ++i) {
        rows[i] = table.data() + i * 8 % kRows * dim;
        out[i] = copied.data() + i * dim;
        std::copy_n(rows[i], dim, expected.data() + i * dim);
      }
      GatherBatch(rows.data(), kRows, dim, gathered.data());
      CopyBatch(rows.data(), out.data(), kRows, dim);
      EXPECT_EQ(gathered, expected) << dim;
      EXPECT_EQ(copied, expected) << dim;
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(KeyIndex, FindsEveryKeyAndNoOtherWhileItGrows) {
  RowArena arena;
  KeyIndex index(&arena);
  EXPECT_EQ(index.Find(7, Mix(7)), KeyIndex::kMissing);
  for (uint32_t i = 0; i < 5000; ++i) {
    const Key key = uint64_t{i} * 0x10001;
    index.Insert(key, Mix(key), i);
  }
  for (uint32_t i = 0; i < 5000; ++i) {
    const Key key = uint64_t{i} * 0x10001;
    ASSERT_EQ(index.Find(key, Mix(key)), i);
    ASSERT_EQ(index.Find(key + 1, Mix(key + 1)), KeyIndex::kMissing);
  }
  EXPECT_EQ(index.size(), 5000u);
  index.Discard();
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
