// Virtual shards that move while training goes on: nothing is lost or applied twice, whoever asks
// finds them, checkpoints stay exact.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include "base/fault_injection.h"
#include "ps/lane/lane.h"
#include "ps/shard_map.h"
#include "ps/testing/test_checkpoint.h"
#include "ps/testing/test_cluster.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

using std::chrono::seconds;

TEST(ShardMapTest, TheHigherEpochIsRight) {
  ShardMap a{Partition(8, {1, 1})}, b = a;
  EXPECT_EQ(a.version(), 1u);
  a.Set(3, {{0, 0}, 2});
  b.Set(3, {{1, 0}, 1});
  b.Set(5, {{0, 0}, 1});
  ShardMap ab = a, ba = b;
  EXPECT_TRUE(ab.Merge(b));
  EXPECT_TRUE(ba.Merge(a));
  EXPECT_EQ(ab, ba);
  EXPECT_FALSE(ab.Merge(a));
  EXPECT_EQ(ab.version(), 4u);
  ShardMap read;
  ASSERT_OK(DecodeShards(EncodeShards(ab), 8, &read));
  EXPECT_EQ(read, ab);
  EXPECT_FALSE(DecodeShards(EncodeShards(ab), 16, &read).ok());
  EXPECT_FALSE(DecodeShards(EncodeShards(ab).substr(0, 60), 8, &read).ok());
}

TEST(PlanMovesTest, NoServerIsTenPercentAboveTheMean) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    const size_t servers = 2 + random() % 7;
    std::vector<uint32_t> lanes(servers);
    for (uint32_t& n : lanes) n = 1 + static_cast<uint32_t>(random() % 3);
    const bool drains = round % 3 == 0;
    if (drains) lanes[random() % servers] = 0;
    std::vector<ShardLoad> loads;
    for (uint32_t shard = 0; shard < 256; ++shard) {
      // Skewed, and some servers (newcomers) have nothing.
      const auto server = static_cast<uint16_t>(random() % (round % 2 == 0 ? servers : 1));
      loads.push_back({shard, {server, 0}, 1000 + random() % (round % 5 == 0 ? 10 : 4000)});
    }
    std::vector<double> bytes(servers);
    for (const ShardLoad& load : loads) bytes[load.owner.server] += static_cast<double>(load.bytes);
    const double total = std::accumulate(bytes.begin(), bytes.end(), 0.0);
    const auto moves = PlanMoves(loads, lanes, 0.05);
    std::set<uint32_t> moved;
    for (const ShardMove& move : moves) {
      EXPECT_TRUE(moved.insert(move.shard).second) << "moved twice";
      EXPECT_LT(move.to.lane, lanes[move.to.server]);
      EXPECT_NE(move.from.server, move.to.server);
      bytes[move.from.server] -= static_cast<double>(move.bytes);
      bytes[move.to.server] += static_cast<double>(move.bytes);
    }
    const double mean = total / static_cast<double>(servers - (drains ? 1 : 0));
    for (size_t server = 0; server < servers; ++server) {
      if (lanes[server] == 0) {
        EXPECT_EQ(bytes[server], 0);
      } else {
        EXPECT_NEAR(bytes[server], mean, 0.1 * mean) << round;
      }
    }
  }
}

TEST(PlanMovesTest, WhatIsEvenStays) {
  std::vector<ShardLoad> loads;
  for (uint32_t shard = 0; shard < 64; ++shard) {
    loads.push_back({shard, {static_cast<uint16_t>(shard % 4), 0}, 100 + shard % 3});
  }
  EXPECT_TRUE(PlanMoves(loads, {1, 1, 1, 1}, 0.05).empty());
  EXPECT_TRUE(PlanMoves(loads, {0, 0, 0, 0}, 0.05).empty());
}

// A client that sends parts again after its connection broke, as channel.cc does.
class LaneTest : public ::testing::Test {
 protected:
  LaneTest() {
    Hello hello;
    hello.client = 1;
    hello.session = 9;
    session_ = lane_.Join(hello, nullptr).value();
    TableSpec spec = DenseSpec("t", 8, 1);
    EXPECT_TRUE(lane_.CreateTable(spec).ok());
    table_ = TableIdOf("t");
  }
  // The refusal's flags; -1: done.
  int SendRequest(FrameType type, uint64_t seq, Key key) {
    FrameHeader head;
    head.type = type;
    head.id = seq;
    head.table = table_;
    head.rows = head.dim = 1;
    head.key_bytes = 8;
    RowChunk part;
    part.keys = &key;
    part.n = part.dim = 1;
    part.deltas = ConstRows(&one_, 1);
    part.out = Rows(&out_, 1);
    RowSource source;
    source.part = &part;
    bool order = false;
    const Status status = lane_.RowOperation(session_, head, source, &order);
    EXPECT_FALSE(order);
    return status.ok() ? -1 : lane_.refusal();
  }
  void GiveAway(uint32_t shard) {
    ShardMap map(partition_);
    map.Set(shard, {{1, 0}, 1});
    ASSERT_TRUE(lane_.ApplyShardMap(map));
  }

  const Partition partition_{1, {1}};
  Lane lane_{&partition_, Owner{0, 0}, nullptr};
  Session* session_ = nullptr;
  uint32_t table_ = 0;
  const float one_ = 1;
  float out_ = 0;
};

TEST_F(LaneTest, WhatHadBeenAppliedIsNotAppliedElsewhereAgain) {
  EXPECT_EQ(SendRequest(FrameType::kPush, 1, 3), -1);
  EXPECT_EQ(SendRequest(FrameType::kPushPull, 2, 3), -1);
  EXPECT_EQ(out_, 2);
  GiveAway(0);
  EXPECT_EQ(SendRequest(FrameType::kPush, 3, 3), kRefusedMoved);
  EXPECT_EQ(SendRequest(FrameType::kPull, 4, 3), kRefusedMoved);
  // All of it again: each gets what it got before.
  EXPECT_EQ(SendRequest(FrameType::kPush, 1, 3), -1);
  EXPECT_EQ(SendRequest(FrameType::kPushPull, 2, 3), kRefusedMoved | kRefusedApplied);
  EXPECT_EQ(SendRequest(FrameType::kPush, 3, 3), kRefusedMoved);
  EXPECT_EQ(SendRequest(FrameType::kPull, 4, 3), kRefusedMoved);
  // Back again, but what was refused has been sent elsewhere by now.
  ShardMap back(partition_);
  back.Set(0, {{0, 0}, 2});
  ASSERT_OK(lane_.PrepareArrival(0, 2, 77));
  EXPECT_EQ(SendRequest(FrameType::kPush, 5, 3), kRefusedMoved) << "rows are arriving";
  ASSERT_TRUE(lane_.ApplyShardMap(back));
  EXPECT_EQ(SendRequest(FrameType::kPush, 3, 3), kRefusedMoved);
  EXPECT_EQ(SendRequest(FrameType::kPush, 6, 3), -1);
}

TEST_F(LaneTest, AShardThatLeavesStandsStillUntilItIsDecided) {
  ASSERT_OK(lane_.BeginDeparture(0));
  EXPECT_FALSE(lane_.BeginDeparture(0).ok());
  EXPECT_EQ(SendRequest(FrameType::kPush, 1, 5), -1);
  EXPECT_EQ(lane_.TakeDirty()[table_], std::vector<Key>{5});
  EXPECT_EQ(lane_.dirty_rows(), 0u);
  ASSERT_TRUE(lane_.Freeze());
  EXPECT_EQ(SendRequest(FrameType::kPush, 2, 5), kRefusedMoved);
  EXPECT_EQ(SendRequest(FrameType::kPull, 3, 5), kRefusedMoved);
  lane_.EndDeparture();
  EXPECT_EQ(SendRequest(FrameType::kPushPull, 4, 5), -1);
  EXPECT_EQ(out_, 2);
}

TEST_F(LaneTest, NothingLeavesWhileASnapshotIsOpen) {
  lane_.BeginCheckpoint(1, {}, false, [](const Status& status, std::string_view shards) {
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(shards, std::string(1, '\1'));
  });
  ASSERT_OK(lane_.BeginDeparture(0));
  EXPECT_FALSE(lane_.Freeze());
  EXPECT_EQ(SendRequest(FrameType::kPush, 1, 5), -1);
  lane_.EndCheckpoint(1, Status::Ok());
  EXPECT_TRUE(lane_.Freeze());
}

TEST_F(LaneTest, TheLeadersCutWaitsUntilItsWorkersHaveSettled) {
  for (const uint8_t late : {uint8_t{0}, kSettledLate}) {
    FrameHeader head;
    head.type = FrameType::kMarker;
    head.argument = 1u + late;
    head.id = 1u + 2u * late;
    ASSERT_OK(lane_.Marker(session_, head));
    bool answered = false;
    lane_.BeginCheckpoint(1 + late, {9}, true, [&](const Status& status, std::string_view shards) {
      answered = true;
      EXPECT_TRUE(status.ok());
      EXPECT_EQ(shards.empty(), late != 0);
    });
    EXPECT_FALSE(answered);
    head.type = FrameType::kSettled;
    head.flags = late;
    ++head.id;
    ASSERT_OK(lane_.Settled(session_, head));
    EXPECT_TRUE(answered);
  }
}

class ShardsTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  static ClusterOptions Options(int servers, int copies = 1) {
    ClusterOptions options;
    options.transport = GetParam();
    options.servers = servers;
    options.threads = 2;
    options.replicas = copies;
    return options;
  }
};

constexpr size_t kKeys = 400;
constexpr uint32_t kDim = 4;

// Pushes to all rows of two tables, and looks what it gets, until told to stop.
class Pusher {
 public:
  // `ordered`: no move is given up meanwhile, so that no request overtakes one that was refused
  // (docs/design/partition.md, "Order").
  Pusher(Cluster* cluster, int index, ValueType wire, bool ordered = true)
      : client_(cluster->Connect(index)), ordered_(ordered) {
    dense_ = client_->CreateTable(DenseSpec("dense", kKeys, kDim)).value();
    TableSpec sparse = SparseSpec("sparse", kDim);
    sparse.optimizer.kind = OptimizerKind::kMomentum;
    sparse.optimizer.lr = -1;
    sparse.optimizer.momentum = 0;
    sparse_ = client_->CreateTable(sparse).value();
    dense_.wire.push = dense_.wire.pull = wire;
    for (Key key = 0; key < kKeys; ++key) keys_.push_back(key), wide_.push_back(key << 40 | key);
    thread_ = std::thread([this] { Play(); });
  }
  ~Pusher() {
    if (thread_.joinable()) thread_.join();
  }
  void Stop() {
    stop_ = true;
    thread_.join();
  }
  int rounds() const { return rounds_; }
  // One push of each table and one pull.
  void Play() {
    const std::vector<float> ones(kKeys * kDim, 1.0f);
    std::vector<float> fresh(kKeys * kDim), pulled(kKeys * kDim);
    float last = 0;
    while (!stop_) {
      const auto a =
          client_->PushPull(dense_, keys_, ConstRows(ones.data(), kDim), Rows(fresh.data(), kDim));
      const auto b = client_->Push(sparse_, wide_, ConstRows(ones.data(), kDim));
      const auto c = client_->Pull(sparse_, wide_, Rows(pulled.data(), kDim));
      for (const auto* ticket : {&a, &b, &c}) {
        ASSERT_OK(*ticket);
        ASSERT_OK(client_->Wait(**ticket, seconds(20)));
      }
      ++rounds_;
      // Its own pushes are there, in order, wherever the rows are by now.
      const float least = static_cast<float>(ordered_ ? rounds_.load() : rounds_ - 1);
      for (const float value : pulled) ASSERT_GE(value, least);
      for (const float value : fresh) ASSERT_GT(value, last);
      last = *std::min_element(fresh.begin(), fresh.end()) - 256;  // others push as well; rounding
    }
  }
  void Check(float rounds) {
    std::vector<float> rows(kKeys * kDim);
    dense_.wire = {};
    ASSERT_OK(client_->Wait(client_->Pull(dense_, keys_, Rows(rows.data(), kDim)).value()));
    EXPECT_EQ(rows, std::vector<float>(kKeys * kDim, rounds));
    ASSERT_OK(client_->Wait(client_->Pull(sparse_, wide_, Rows(rows.data(), kDim)).value()));
    EXPECT_EQ(rows, std::vector<float>(kKeys * kDim, rounds));
  }

 private:
  std::unique_ptr<Client> client_;
  const bool ordered_;
  TableRef dense_, sparse_;
  std::vector<Key> keys_, wide_;
  std::atomic<bool> stop_{false};
  std::atomic<int> rounds_{0};
  std::thread thread_;
};

TEST_P(ShardsTest, RowsMoveUnderPushesAndPulls) {
  Cluster cluster(Options(3));
  Pusher first(&cluster, 0, ValueType::kF32), second(&cluster, 1, ValueType::kBf16);
  auto admin = cluster.ConnectAdmin();
  std::mt19937_64 random(3);
  Duration longest{0};
  for (int move = 0; move < 60; ++move) {
    const auto done = admin->MoveShard(static_cast<uint32_t>(random() % 64),
                                       static_cast<int>(random() % 3), random() % 2);
    ASSERT_OK(done);
    longest = std::max(longest, done->longest_stall);
  }
  first.Stop();
  second.Stop();
  EXPECT_GT(first.rounds(), 10);
  // bf16 carries ones exactly.
  first.Check(static_cast<float>(first.rounds() + second.rounds()));
  second.Check(static_cast<float>(first.rounds() + second.rounds()));
  std::printf("60 moves, %d pushes, longest stall %s\n", first.rounds() + second.rounds(),
              FormatDuration(longest).c_str());
}

TEST_P(ShardsTest, ADrainedServerHasNothingAndNewcomersKnowIt) {
  Cluster cluster(Options(3));
  Pusher pusher(&cluster, 0, ValueType::kF32);
  ASSERT_TRUE(Eventually([&] { return pusher.rounds() > 3; }));
  auto admin = cluster.ConnectAdmin();
  const auto done = admin->RebalanceShards({.drain = {1}});
  ASSERT_OK(done);
  EXPECT_GT(done->moves, 0);
  EXPECT_EQ(done->after[1], 0u);
  const double mean = static_cast<double>(done->after[0] + done->after[2]) / 2;
  EXPECT_NEAR(static_cast<double>(done->after[0]), mean, 0.1 * mean);
  const auto reports = admin->Describe();
  ASSERT_OK(reports);
  for (const TableReport& table : (*reports)[1].tables) EXPECT_EQ(table.stored_rows, 0u);
  pusher.Stop();
  pusher.Check(static_cast<float>(pusher.rounds()));
  auto newcomer = cluster.Connect(1);
  const TableRef table = newcomer->CreateTable(DenseSpec("dense", kKeys, kDim)).value();
  std::vector<float> rows(kKeys * kDim);
  ASSERT_OK(newcomer->PullRange(table, 0, kKeys, Rows(rows.data(), kDim)));
  EXPECT_EQ(rows, std::vector<float>(kKeys * kDim, static_cast<float>(pusher.rounds())));
  // And it gets its part again.
  const auto back = admin->RebalanceShards({});
  ASSERT_OK(back);
  EXPECT_GT(back->after[1], 0u);
  pusher.Check(static_cast<float>(pusher.rounds()));
}

TEST_P(ShardsTest, CheckpointsAreExactWhileShardsMove) {
  ClusterOptions options = Options(3);
  options.checkpoints = true;
  options.workers = 1;
  Cluster cluster(options);
  auto client = cluster.Connect(0);
  const TableRef table = client->CreateTable(DenseSpec("t", kKeys, kDim)).value();
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::thread trains([&] {
    std::vector<Key> keys(kKeys);
    std::iota(keys.begin(), keys.end(), Key{0});
    const std::vector<float> ones(kKeys * kDim, 1.0f);
    while (!stop) {
      Ticket ticket;
      {
        Client::IssueScope scope(*client);
        ticket = client->Push(table, keys, ConstRows(ones.data(), kDim)).value();
        ++rounds;
        ASSERT_OK(client->SetProgress(std::to_string(rounds * int{kKeys} * int{kDim})));
      }
      if (rounds % 4 == 0) ASSERT_OK(client->Wait(ticket));
    }
    ASSERT_OK(client->Flush());
  });
  std::thread moves([&] {
    auto admin = cluster.ConnectAdmin();
    std::mt19937_64 random(5);
    while (!stop) {
      ASSERT_OK(admin->MoveShard(static_cast<uint32_t>(random() % 64),
                                 static_cast<int>(random() % 3), random() % 2));
    }
  });
  auto admin = cluster.ConnectAdmin();
  int64_t id = 0;
  for (int taken = 0; taken < 5; ++taken) {
    const auto info = admin->Checkpoint(seconds(60));
    ASSERT_OK(info);
    id = info->id;
    const CheckpointSum sum = SumCheckpoint(cluster.checkpoint_dir(), id);
    EXPECT_EQ(sum.values, sum.progress) << "checkpoint " << id;
    EXPECT_EQ(sum.by_table.at("t").size(), kKeys);
  }
  stop = true;
  trains.join();
  moves.join();
  // One that starts again knows which shards are its own by now.
  cluster.KillServer(1);
  cluster.StartServer(1);
  std::vector<float> rows(kKeys * kDim);
  ASSERT_OK(client->PullRange(table, 0, kKeys, Rows(rows.data(), kDim)));
  for (const float value : rows) EXPECT_GT(value, 0);
}

TEST_P(ShardsTest, ATargetThatDiesTakesNothingAlong) {
  Cluster cluster(Options(3));
  auto admin = cluster.ConnectAdmin();
  // What it has is lost with it (one copy): so it has nothing.
  ASSERT_OK(admin->RebalanceShards({.drain = {2}}));
  Pusher pusher(&cluster, 0, ValueType::kF32, false);
  for (const char* moment : {"ps.move.copied", "ps.move.arrived"}) {
    ASSERT_TRUE(Eventually([&] { return pusher.rounds() > 3; }));
    ASSERT_OK(SetFaults(std::string(moment) + "=EPIPE"));
    const auto cut = admin->MoveShard(0, 2, 0);
    ASSERT_OK(SetFaults(""));
    EXPECT_FALSE(cut.ok());
    cluster.KillServer(2);
    cluster.StartServer(2);
  }
  ASSERT_OK(admin->MoveShard(0, 2, 1));
  pusher.Stop();
  pusher.Check(static_cast<float>(pusher.rounds()));
}

TEST_P(ShardsTest, WhatCannotBeMovedIsSaid) {
  Cluster cluster(Options(2));
  auto admin = cluster.ConnectAdmin();
  EXPECT_EQ(admin->MoveShard(64, 0, 0).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(admin->MoveShard(0, 2, 0).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(admin->MoveShard(0, 0, 2).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(admin->RebalanceShards({.drain = {0, 1}}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(admin->RebalanceShards({.drain = {5}}).status().code(), Code::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Doors, ShardsTest,
                         ::testing::Values(TransportKind::kInProcess, TransportKind::kTcp,
                                           TransportKind::kShared));

}  // namespace
}  // namespace shoal::ps
