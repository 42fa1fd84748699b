// Two copies of everything: nothing acknowledged is lost when a server dies.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/bytes.h"
#include "ps/lane/replica_entry.h"
#include "ps/server/server_core.h"
#include "ps/testing/test_cluster.h"

namespace shoal::ps {
namespace {

class ReplicaTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  static ClusterOptions Options(int servers) {
    ClusterOptions options;
    options.transport = GetParam();
    options.servers = servers;
    options.workers = 1;
    options.threads = 2;
    options.replicas = 2;
    return options;
  }
};

TEST_P(ReplicaTest, ADeadServersRowsAreServedByItsNeighbour) {
  Cluster cluster(Options(2));
  auto client = cluster.Connect(0);
  ASSERT_NE(client, nullptr);
  const TableRef table = client->CreateTable(DenseSpec("t", 100, 4)).value();
  std::vector<Key> keys(100);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  const std::vector<float> ones(400, 1.0f);
  const auto push = [&] {
    return client->Wait(client->Push(table, keys, ConstRows(ones.data(), 4)).value());
  };
  ASSERT_OK(push());
  ASSERT_TRUE(AllReplicated(&cluster, 2));
  for (float round = 2; round < 8; ++round) {
    const int victim = static_cast<int>(round) % 2;
    cluster.KillServer(victim);
    std::vector<float> rows(400);
    const auto ticket =
        client->PushPull(table, keys, ConstRows(ones.data(), 4), Rows(rows.data(), 4));
    ASSERT_OK(ticket);
    cluster.StartServer(victim);
    ASSERT_OK(client->Wait(*ticket));
    EXPECT_EQ(rows, std::vector<float>(400, round));
    ASSERT_TRUE(AllReplicated(&cluster, 2));
  }
  EXPECT_EQ(client->server_restarts(), 0);
}

// The neighbour that keeps a dead server's rows may make its next incarnation their copy before
// that incarnation has told anybody else; whoever had a copy at the earlier incarnation must hear
// of it all the same.
TEST_P(ReplicaTest, EverybodyHearsWhoIsBack) {
  Cluster cluster(Options(3));
  ASSERT_TRUE(AllReplicated(&cluster, 3));
  const MemberView named = cluster.members.Current();
  cluster.KillServer(2);
  FixedMembers its;  // what the next incarnation sees: no server 1 yet
  its.SetReplicas(2);
  its.Set(0, named.servers[0]);
  its.Set(1, "");
  its.Set(2, "");
  ServerOptions options = cluster.OptionsOf(2);
  options.incarnation = 2;
  options.members = &its;
  auto server = Server::Start(options);
  ASSERT_OK(server);
  cluster.members.Set(2, (*server)->address());
  its.Set(2, (*server)->address());
  const auto keeps = [](Server& at, int index) {
    const std::vector<int> here = at.backup_of();
    return std::find(here.begin(), here.end(), index) != here.end();
  };
  // At the new incarnation, or at server 1 if server 0 was quick.
  EXPECT_TRUE(Eventually([&] { return keeps(**server, 2) || keeps(cluster.server(1), 2); }));
  its.Set(1, named.servers[1]);
  EXPECT_TRUE(Eventually([&] { return keeps(**server, 1); }));
}

TEST_P(ReplicaTest, WhatWasTakenOverIsInTheMetrics) {
  Cluster cluster(Options(2));
  auto client = cluster.Connect(0);
  const TableRef table = client->CreateTable(DenseSpec("t", 128, 4)).value();
  std::vector<Key> keys(128);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  const std::vector<float> ones(512, 1.0f);
  ASSERT_TRUE(AllReplicated(&cluster, 2));
  EXPECT_EQ(cluster.server(0).metrics().tables.at(0).rows, 64u);
  cluster.KillServer(1);
  cluster.members.Set(1, "");
  const uint64_t before = cluster.server(0).counters().rows_pushed;
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(client->Wait(client->Push(table, keys, ConstRows(ones.data(), 4)).value()));
  }
  EXPECT_GE(cluster.server(0).counters().rows_pushed, before + 20 * 128);
  const ServerMetrics metrics = cluster.server(0).metrics();
  ASSERT_EQ(metrics.tables.size(), 1u);
  EXPECT_EQ(metrics.tables[0].rows, 128u);
  double share = 0;
  for (const HotKey& key : cluster.server(0).hot_keys(128)) share += key.share;
  EXPECT_LE(share, 1.001);
  EXPECT_GT(share, 0.1);
}

class Nobody final : public ServerConnection {
 public:
  void Reply(const FrameHeader&, std::string_view) override {}
  void CloseAfterFlush(const Status&) override {}
  void FlushReplies() override {}
};

// The logs of two lanes come by two connections. A shard that went away and is coming back to one
// lane is not there because the other lane's log says already that it will be.
TEST(ReplicaCopyTest, ALaneGoesByItsOwnLog) {
  ServerOptions options;
  options.token = "t";
  options.servers = options.initial_servers = 2;
  options.shards = 8;
  options.threads = 2;
  const auto core = ServerCore::MakeBackup(options);
  const auto peer = std::make_shared<Nobody>();
  uint32_t shard = 0;
  while (core->lane(1).state(shard) != ShardState::kHere) ++shard;
  ShardMap gone = core->shards().Map();
  const ShardAssignment first = gone.At(shard);
  gone.Set(shard, {{1, 0}, first.epoch + 1});
  ShardMap back = gone;
  back.Set(shard, {first.owner, first.epoch + 2});
  Hello lanes[2];
  uint64_t sent[2] = {};
  for (uint32_t lane = 0; lane < 2; ++lane) {
    lanes[lane].kind = HelloKind::kCopy;
    lanes[lane].session = 1;
    lanes[lane].from = 1;
    lanes[lane].lane = lane;
    ASSERT_OK(core->Join(lanes[lane], peer));
  }
  const auto tell = [&](uint32_t lane, const std::string& entry) {
    FrameHeader head;
    head.type = FrameType::kReplicate;
    head.id = ++sent[lane];
    Lane::Guard guard(core->lane(lane));
    return core->Control(lanes[lane], peer, head, entry);
  };
  std::string arriving = BeginEntry(EntryKind::kArriving, -1, 7);
  ByteWriter writer(&arriving);
  writer.Put(shard);
  writer.Put(first.epoch + 2);
  const auto shards = [](const ShardMap& map) {
    return BeginEntry(EntryKind::kShards, -1, 0) + EncodeShards(map);
  };
  ASSERT_OK(tell(0, shards(back)));
  ASSERT_OK(tell(1, shards(gone)));
  EXPECT_EQ(core->lane(1).state(shard), ShardState::kElsewhere);
  ASSERT_OK(tell(1, arriving));
  EXPECT_EQ(core->lane(1).state(shard), ShardState::kArriving);
  // Its rows are confirmed before it is decided, so they are here.
  core->TakeOver();
  EXPECT_EQ(core->lane(1).state(shard), ShardState::kHere);
}

INSTANTIATE_TEST_SUITE_P(Doors, ReplicaTest,
                         ::testing::Values(TransportKind::kInProcess, TransportKind::kTcp,
                                           TransportKind::kShared));

}  // namespace
}  // namespace shoal::ps
