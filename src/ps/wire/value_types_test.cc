// What rows cost on the wire and what they come to be, over every transport; server functions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "ps/storage/row_function.h"
#include "ps/testing/test_cluster.h"

namespace shoal::ps {

namespace {

constexpr uint32_t kDim = 100;
constexpr size_t kKeys = 1000;

TableSpec SpecOf(const std::string& name, KeySpace space) {
  TableSpec spec;
  spec.name = name;
  spec.key_space = space;
  spec.rows = 70'000;
  spec.dim = kDim;
  return spec;
}

Status Done(Client* client, const Result<Ticket>& ticket) {
  TRY(ticket.status());
  return client->Wait(*ticket);
}

class PsWire : public ::testing::TestWithParam<TransportKind> {
 protected:
  ClusterOptions Options() const {
    ClusterOptions options;
    options.transport = GetParam();
    options.workers = 1;
    return options;
  }
};

// Three rounds of random deltas, the second as a push-pull, mirrored in `sum` as Push says they
// were sent.
void PushRounds(Client* client, const TableRef& table, std::span<const Key> keys,
                std::vector<float>* sum) {
  std::mt19937 random(3);
  std::normal_distribution<float> draw(0, 1);
  std::vector<float> wanted(keys.size() * kDim), out(wanted.size());
  for (int round = 0; round < 3; ++round) {
    for (float& value : wanted) value = draw(random);
    std::vector<float> deltas = wanted;
    const Rows in(deltas.data(), kDim), to(out.data(), kDim);
    ASSERT_OK(Done(client, round == 1 ? client->PushPull(table, keys, in, to)
                                      : client->Push(table, keys, in)));
    const bool exact = table.wire.push == ValueType::kF32;
    EXPECT_EQ(deltas == wanted, exact);
    for (size_t at = 0; at < deltas.size(); ++at) {
      (*sum)[keys[at / kDim] * kDim + at % kDim] += deltas[at];
      ASSERT_NEAR(deltas[at], wanted[at], exact ? 0.0 : 0.03);
    }
  }
}

TEST_P(PsWire, ServersAddExactlyWhatPushSaysItSent) {
  Cluster cluster(Options());
  auto client = cluster.Connect(0);
  std::mt19937 random(4);
  std::vector<Key> keys(kKeys);
  for (Key& key : keys) key = random() % 7'000;  // some come twice
  std::vector<std::pair<ValueType, KeySpace>> cases;
  for (const auto type : {ValueType::kF32, ValueType::kBf16, ValueType::kInt8}) {
    cases.emplace_back(type, KeySpace::kDense);
    cases.emplace_back(type, KeySpace::kSparse);
  }
  for (const auto& [type, space] : cases) {
    const std::string name = std::to_string(int(type)) + std::to_string(int(space));
    auto made = client->CreateTable(SpecOf(name, space));
    ASSERT_OK(made);
    TableRef table = *made;
    table.wire.push = type;
    std::vector<float> sum(7'000 * kDim), out(kKeys * kDim);
    PushRounds(client.get(), table, keys, &sum);
    ASSERT_OK(Done(client.get(), client->Pull(table, keys, Rows(out.data(), kDim))));
    for (size_t i = 0; i < kKeys; ++i) {
      ASSERT_EQ(std::memcmp(&out[i * kDim], &sum[keys[i] * kDim], kDim * sizeof(float)), 0) << i;
    }
  }
}

TEST_P(PsWire, PullsMayComeRounded) {
  Cluster cluster(Options());
  auto client = cluster.Connect(0);
  auto spec = SpecOf("t", KeySpace::kDense);
  spec.initializer = {InitializerKind::kUniform, -1, 1, 5};
  auto made = client->CreateTable(spec);
  ASSERT_OK(made);
  TableRef table = *made;
  std::vector<Key> keys(kKeys);
  for (size_t i = 0; i < kKeys; ++i) keys[i] = i * 7;
  std::vector<float> exact(kKeys * kDim), half(kKeys * kDim);
  ASSERT_OK(Done(client.get(), client->Pull(table, keys, Rows(exact.data(), kDim))));
  table.wire.pull = ValueType::kBf16;
  ASSERT_OK(Done(client.get(), client->Pull(table, keys, Rows(half.data(), kDim))));
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_NEAR(half[i], exact[i], std::abs(exact[i]) * 0x1p-8) << i;
  }
  EXPECT_EQ(half == exact, GetParam() == TransportKind::kInProcess)
      << "in process, rows go as they are";
  table.wire.pull = ValueType::kInt8;
  ASSERT_OK(Done(client.get(), client->Pull(table, keys, Rows(half.data(), kDim))));
  for (size_t i = 0; i < exact.size(); ++i) {
    // Half of 1/127 of the row's largest, which is below 1, and the scale is rounded up.
    ASSERT_NEAR(half[i], exact[i], 0.51 / 127) << i;
  }
  EXPECT_EQ(half == exact, GetParam() == TransportKind::kInProcess);
  table.wire.pull = static_cast<ValueType>(3);
  EXPECT_EQ(client->Pull(table, keys, Rows(half.data(), kDim)).status().code(),
            Code::kInvalidArgument);
}

// w += clip(g) or, without deltas, w *= argument; refuses an empty argument.
std::shared_ptr<Functions> SomeFunctions() {
  auto functions = std::make_shared<Functions>();
  const auto clip = [](const FunctionBatch& batch) -> Status {
    if (batch.argument.size() != sizeof(float)) return InvalidArgument("clip: expected one float");
    float most = 0;
    std::memcpy(&most, batch.argument.data(), sizeof most);
    for (size_t i = 0; i < batch.size(); ++i) {
      for (size_t d = 0; d < batch.dim; ++d) {
        float& w = batch.rows[i][d];
        w = batch.deltas == nullptr ? w * most : w + std::clamp(batch.deltas[i][d], -most, most);
      }
    }
    return Status::Ok();
  };
  EXPECT_TRUE(functions->Add("clip", clip).ok());
  // The mean of what was pushed: state 0 counts.
  const auto mean = [](const FunctionBatch& batch) {
    for (size_t i = 0; i < batch.size(); ++i) {
      for (size_t d = 0; d < batch.dim; ++d) {
        float& n = batch.state(i)[d];
        n += 1;
        batch.rows[i][d] += (batch.deltas[i][d] - batch.rows[i][d]) / n;
      }
    }
    return Status::Ok();
  };
  EXPECT_TRUE(functions->Add("mean", mean).ok());
  EXPECT_EQ(functions->Add("mean", nullptr).code(), Code::kInvalidArgument);
  EXPECT_EQ(functions->Add("clip", [](const FunctionBatch&) { return Status::Ok(); }).code(),
            Code::kAlreadyExists);
  return functions;
}

std::string Bytes(float value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

TEST_P(PsWire, FunctionsRunWhereTheRowsAre) {
  auto options = Options();
  options.functions = SomeFunctions();
  Cluster cluster(options);
  auto client = cluster.Connect(0);
  auto made = client->CreateTable(SpecOf("t", KeySpace::kSparse));
  ASSERT_OK(made);
  TableRef table = *made;
  std::vector<Key> keys(kKeys);
  for (size_t i = 0; i < kKeys; ++i) keys[i] = i * 1'000'003;
  const std::vector<float> threes(kKeys * kDim, 3.0f);
  std::vector<float> out(kKeys * kDim);
  const ConstRows in(threes.data(), kDim);
  const Rows to(out.data(), kDim);
  ASSERT_OK(Done(client.get(), client->Call(table, "clip", keys, Bytes(2), {in, to})));
  EXPECT_EQ(out, std::vector<float>(kKeys * kDim, 2.0f));
  ASSERT_OK(Done(client.get(), client->Call(table, "clip", keys, Bytes(5), {{}, {}})));
  table.wire = {ValueType::kInt8, ValueType::kBf16};
  ASSERT_OK(Done(client.get(), client->Call(table, "clip", keys, Bytes(4), {in, to})));
  for (const float value : out) ASSERT_NEAR(value, 13.0f, 0.1f);
  EXPECT_EQ(cluster.server(0).counters().duplicates, 0u);

  const Status unknown = Done(client.get(), client->Call(table, "clop", keys, "", {in, {}}));
  EXPECT_EQ(unknown.code(), Code::kNotFound);
  EXPECT_NE(unknown.message().find("'clop'"), std::string::npos) << unknown.message();
  const Status refused = Done(client.get(), client->Call(table, "clip", keys, "", {in, {}}));
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_NE(refused.message().find("expected one float"), std::string::npos);
  EXPECT_FALSE(client->Call(table, "", keys, "", {in, {}}).ok());
  const std::string huge(kMaxFunctionArgument + 1, 'x');
  EXPECT_FALSE(client->Call(table, "clip", keys, huge, {in, {}}).ok());
  // Refusals leave the stream intact.
  ASSERT_OK(Done(client.get(), client->Pull(table, keys, to)));
}

TEST_P(PsWire, AFunctionMayBeATablesOptimizer) {
  auto options = Options();
  options.functions = SomeFunctions();
  Cluster cluster(options);
  auto client = cluster.Connect(0);
  auto spec = SpecOf("t", KeySpace::kDense);
  spec.optimizer.kind = OptimizerKind::kFunction;
  spec.optimizer.function = "mode";
  const auto missing = client->CreateTable(spec);
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_NE(missing.status().message().find("no function 'mode'"), std::string::npos)
      << missing.status().message();
  spec.optimizer.function = "mean";
  spec.optimizer.state_planes = 1;
  const auto table = client->CreateTable(spec);
  ASSERT_OK(table);
  const std::vector<Key> keys = {5, 7};
  for (const float value : {1.0f, 2.0f, 6.0f}) {
    const std::vector<float> deltas(2 * kDim, value);
    ASSERT_OK(Done(client.get(), client->Push(*table, keys, ConstRows(deltas.data(), kDim))));
  }
  std::vector<float> out(2 * kDim);
  ASSERT_OK(Done(client.get(), client->Pull(*table, keys, Rows(out.data(), kDim))));
  EXPECT_EQ(out, std::vector<float>(2 * kDim, 3.0f));
}

TEST_P(PsWire, HotKeysAreSeen) {
  Cluster cluster(Options());
  auto client = cluster.Connect(0);
  const auto table = client->CreateTable(SpecOf("t", KeySpace::kSparse));
  ASSERT_OK(table);
  std::vector<Key> keys(kKeys);
  std::vector<float> out(kKeys * kDim);
  for (uint64_t round = 0; round < 60; ++round) {
    for (size_t i = 0; i < kKeys; ++i) keys[i] = i % 4 == 0 ? 77 : round * kKeys + i;
    ASSERT_OK(Done(client.get(), client->Pull(*table, keys, Rows(out.data(), kDim))));
  }
  size_t seen = 0;
  for (int i = 0; i < 2; ++i) {
    for (const HotKey& hot : cluster.server(i).hot_keys(1)) {
      if (hot.key != 77) continue;
      ++seen;
      EXPECT_EQ(hot.table, "t");
      EXPECT_NEAR(static_cast<double>(hot.rows), 15'000, 4'000);
      EXPECT_NEAR(hot.share, 0.4, 0.1);  // of its server's rows: 250 of about 625
    }
  }
  EXPECT_EQ(seen, 1u);
}

INSTANTIATE_TEST_SUITE_P(Doors, PsWire,
                         ::testing::Values(TransportKind::kInProcess, TransportKind::kTcp,
                                           TransportKind::kShared),
                         [](const auto& param_info) {
                           return param_info.param == TransportKind::kTcp      ? "Tcp"
                                  : param_info.param == TransportKind::kShared ? "Shared"
                                                                               : "InProcess";
                         });

struct Cost {
  const char* what;
  Wire wire;
  bool sorted;
  bool repeats;
};

// Bytes a row over TCP, frames and all, of a push and of a pull of 1,000 rows of 100 floats.
std::pair<double, double> Measure(const Cost& cost) {
  ClusterOptions options;
  options.servers = 1;
  Cluster cluster(options);
  auto client = cluster.Connect(0);
  TableRef table = client->CreateTable(SpecOf("t", KeySpace::kDense)).value();
  table.wire = cost.wire;
  std::mt19937 random(3);
  std::vector<float> rows(kKeys * kDim, 0.5f);
  std::vector<Key> keys(kKeys);
  const auto draw = [&] {
    for (Key& key : keys) key = random() % 70'000;
    if (cost.sorted) std::sort(keys.begin(), keys.end());
  };
  draw();
  constexpr int kRounds = 20;
  const auto bytes = [&](const auto& issue) {
    // The first time its keys are not known yet.
    if (cost.repeats && !Done(client.get(), issue()).ok()) return 1e9;
    // Once this is answered, everything before it has been counted.
    const auto counters = [&] {
      EXPECT_EQ(client->GetProgress(0).status().code(), Code::kNotFound);
      return cluster.server(0).counters();
    };
    const Counters before = counters();
    for (int i = 0; i < kRounds; ++i) {
      if (!cost.repeats) draw();
      EXPECT_TRUE(Done(client.get(), issue()).ok());
    }
    const Counters after = counters();
    return static_cast<double>(after.wire_bytes_in - before.wire_bytes_in + after.wire_bytes_out -
                               before.wire_bytes_out) /
           (kRounds * kKeys);
  };
  const double push =
      bytes([&] { return client->Push(table, keys, ConstRows(rows.data(), kDim)); });
  const double pull = bytes([&] { return client->Pull(table, keys, Rows(rows.data(), kDim)); });
  return {push, pull};
}

TEST(PsWireCost, IsWhatTheTypesSayAndKeysAddLittle) {
  const Wire f32, half{ValueType::kBf16, ValueType::kBf16},
      codes{ValueType::kInt8, ValueType::kBf16}, both{ValueType::kInt8, ValueType::kInt8};
  const std::vector<Cost> costs = {{"f32", f32, false, false},
                                   {"f32, sorted keys", f32, true, false},
                                   {"f32, repeated keys", f32, false, true},
                                   {"bf16", half, false, false},
                                   {"bf16, sorted keys", half, true, false},
                                   {"bf16, repeated keys", half, false, true},
                                   {"int8", codes, false, false},
                                   {"int8, pulled too", both, false, false},
                                   {"int8, sorted keys", codes, true, false},
                                   {"int8, repeated keys", codes, false, true}};
  for (const Cost& cost : costs) {
    const auto [push, pull] = Measure(cost);
    std::printf("  %-22s push %.2f pull %.2f bytes a row\n", cost.what, push, pull);
    const double keys = cost.repeats ? 0.0 : cost.sorted ? 1.3 : 4.0;
    // Headers and acknowledgements: five frames of up to 245 rows, and as many answers.
    const double frames = 5.0 * 128 / kKeys + 0.1;
    const auto values = [](ValueType type) {
      return static_cast<double>(WireRowBytes(type, kDim));
    };
    EXPECT_LE(push, values(cost.wire.push) + keys + frames) << cost.what;
    EXPECT_LE(pull, values(cost.wire.pull) + keys + frames) << cost.what;
  }
}

}  // namespace
}  // namespace shoal::ps
