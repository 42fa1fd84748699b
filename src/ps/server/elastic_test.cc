// Servers and workers that join and leave while others push and pull: nothing is lost or applied
// twice, new servers get rows by themselves, those that leave give away all they have.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include "base/fault_injection.h"
#include "ps/shard_map.h"
#include "ps/testing/test_checkpoint.h"
#include "ps/testing/test_cluster.h"
#include "ps/testing/test_proxy.h"

namespace shoal::ps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Key kKeys = 640;
constexpr uint32_t kDim = 4;

// A worker that pushes ones to all rows without pause, and reads what it has pushed.
class Pusher {
 public:
  Pusher(Cluster* cluster, int index, Consistency consistency = {})
      : client_(cluster->Connect(index, consistency)),
        dense_(client_->CreateTable(DenseSpec("dense", kKeys, kDim)).value()),
        sparse_(client_->CreateTable(SparseSpec("sparse", kDim)).value()),
        keys_(kKeys) {
    std::iota(keys_.begin(), keys_.end(), Key{0});
  }
  ~Pusher() { Stop(); }
  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int rounds() const { return rounds_; }
  bool MoreRounds(int n) {
    const int until = rounds_ + n;
    return Eventually([&] { return rounds_ >= until || stop_; }) && !stop_;
  }
  // All rows of both tables have this value.
  void Expect(float value) {
    for (const TableRef& table : {dense_, sparse_}) {
      std::vector<float> rows(kKeys * kDim);
      ASSERT_OK(client_->Wait(client_->Pull(table, keys_, Rows(rows.data(), kDim)).value()));
      EXPECT_EQ(rows, std::vector<float>(kKeys * kDim, value));
    }
  }
  Client& client() { return *client_; }

 private:
  void Run() {
    const std::vector<float> ones(kKeys * kDim, 1.0f);
    std::vector<float> seen(kKeys * kDim);
    float before = 0;
    while (!stop_) {
      const ConstRows all(ones.data(), kDim);
      const auto push = client_->Push(dense_, keys_, all);
      const auto pull = client_->PushPull(sparse_, keys_, all, Rows(seen.data(), kDim));
      const Status pushed = client_->Wait(push.value()), pulled = client_->Wait(pull.value());
      EXPECT_TRUE(pushed.ok() && pulled.ok()) << pushed.ToString() << pulled.ToString();
      const auto [least, most] = std::minmax_element(seen.begin(), seen.end());
      EXPECT_GE(*least, before + 1);  // its own pushes, each once
      before = *least;
      ++rounds_;
      if (!pushed.ok() || !pulled.ok()) stop_ = true;
    }
  }

  std::unique_ptr<Client> client_;
  TableRef dense_, sparse_;
  std::vector<Key> keys_;
  std::atomic<bool> stop_{false};
  std::atomic<int> rounds_{0};
  std::thread thread_;
};

uint64_t RowsAt(Cluster* cluster, int server) {
  uint64_t rows = 0;
  for (const TableMetrics& table : cluster->server(server).metrics().tables) rows += table.rows;
  return rows;
}

class ElasticTest : public ::testing::TestWithParam<std::tuple<TransportKind, int>> {
 protected:
  ClusterOptions Options(int servers) const {
    ClusterOptions options;
    options.transport = std::get<0>(GetParam());
    options.replicas = std::get<1>(GetParam());
    options.servers = servers;
    options.threads = 2;
    options.workers = 2;
    options.balance = milliseconds(10);
    return options;
  }
};

TEST_P(ElasticTest, AServerThatJoinsGetsItsPartByItself) {
  Cluster cluster(Options(2));
  Pusher first(&cluster, 0), second(&cluster, 1);
  first.Start();
  second.Start();
  ASSERT_TRUE(first.MoreRounds(3));
  cluster.AddServer();
  EXPECT_TRUE(Eventually([&] { return RowsAt(&cluster, 2) > 2 * kKeys * 8 / 30; }));
  ASSERT_TRUE(first.MoreRounds(3));
  ASSERT_TRUE(second.MoreRounds(3));
  first.Stop();
  second.Stop();
  first.Expect(static_cast<float>(first.rounds() + second.rounds()));
  EXPECT_EQ(first.client().server_restarts(), 0);
  // Who comes now finds it, too.
  Pusher third(&cluster, 2);
  third.Expect(static_cast<float>(first.rounds() + second.rounds()));
}

TEST_P(ElasticTest, AServerThatLeavesGivesAwayWhatItHas) {
  Cluster cluster(Options(3));
  Pusher first(&cluster, 0), second(&cluster, 1);
  ASSERT_OK(first.client().PutBlob("a blob", std::string(3 << 20, 'b')));
  first.Start();
  second.Start();
  ASSERT_TRUE(second.MoreRounds(3));
  ASSERT_OK(cluster.server(2).Leave(seconds(20)));
  cluster.RemoveServer(2);
  ASSERT_TRUE(first.MoreRounds(3));
  ASSERT_TRUE(second.MoreRounds(3));
  first.Stop();
  second.Stop();
  first.Expect(static_cast<float>(first.rounds() + second.rounds()));
  EXPECT_EQ(first.client().server_restarts(), 0);
  const auto blob = second.client().GetBlob("a blob");
  ASSERT_OK(blob);
  EXPECT_EQ(*blob, std::string(3 << 20, 'b'));
}

// Also when whoever balances cannot tell the others who has its rows now.
TEST_P(ElasticTest, TheLeaderKnowsWhoHasTheRowsOfAServerThatHasLeft) {
  ClusterOptions options = Options(3);
  options.balance = milliseconds(0);
  Cluster cluster(options);
  Pusher first(&cluster, 0);
  first.Start();
  ASSERT_TRUE(first.MoreRounds(3));
  Admin::Rebalance how;
  how.drain = {0};  // so that all go to server 1
  ASSERT_OK(cluster.ConnectAdmin()->RebalanceShards(how, seconds(20)));
  ASSERT_OK(SetFaults("ps.rebalance.tell=EPIPE"));
  ASSERT_OK(cluster.server(2).Leave(seconds(20)));
  ASSERT_OK(SetFaults(""));
  cluster.RemoveServer(2);
  first.Stop();
  Pusher second(&cluster, 1);
  second.Expect(static_cast<float>(first.rounds()));
}

TEST_P(ElasticTest, ServersComeAndGoAgainAndAgain) {
  Cluster cluster(Options(2));
  Pusher first(&cluster, 0), second(&cluster, 1);
  first.Start();
  second.Start();
  for (int round = 0; round < 3; ++round) {
    cluster.AddServer();
    ASSERT_TRUE(Eventually([&] { return RowsAt(&cluster, 2) > 0; }));
    cluster.AddServer();
    ASSERT_TRUE(first.MoreRounds(2));
    // Both at once: neither takes the other one's rows for long.
    Status left;
    std::thread other([&] { left = cluster.server(3).Leave(seconds(20)); });
    ASSERT_OK(cluster.server(2).Leave(seconds(20)));
    other.join();
    ASSERT_OK(left);
    cluster.RemoveServer(3);
    cluster.RemoveServer(2);
    ASSERT_TRUE(second.MoreRounds(2));
  }
  first.Stop();
  second.Stop();
  first.Expect(static_cast<float>(first.rounds() + second.rounds()));
}

// The last but one of those that the job began with: what it owned at first is not its own when it
// comes again.
TEST_P(ElasticTest, OneOfTheFirstLeavesAndComesBack) {
  Cluster cluster(Options(2));
  Pusher pusher(&cluster, 0);
  pusher.Start();
  ASSERT_TRUE(pusher.MoreRounds(3));
  if (std::get<1>(GetParam()) == 2) cluster.AddServer();  // for there must be two
  ASSERT_OK(cluster.server(1).Leave(seconds(20)));
  cluster.ReleaseServer(1);
  ASSERT_TRUE(pusher.MoreRounds(3));
  cluster.StartServer(1);
  ASSERT_TRUE(Eventually([&] { return RowsAt(&cluster, 1) > 0; }));
  ASSERT_TRUE(pusher.MoreRounds(3));
  pusher.Stop();
  pusher.Expect(static_cast<float>(pusher.rounds()));
}

// Server 1 has given its rows away and left; the leader that is started again knows that they are
// its own, and the clients still know the job as one that began with two servers.
TEST(ElasticTest, ALeaderThatIsLeftAloneRestoresAllRows) {
  ClusterOptions options;
  options.servers = 2;
  options.workers = 1;
  options.checkpoints = true;
  options.threads = 2;
  Cluster cluster(options);
  Pusher pusher(&cluster, 0);
  pusher.Start();
  ASSERT_TRUE(pusher.MoreRounds(3));
  ASSERT_OK(cluster.server(1).Leave(seconds(20)));
  cluster.RemoveServer(1);
  ASSERT_TRUE(pusher.MoreRounds(3));
  pusher.Stop();
  ASSERT_OK(cluster.ConnectAdmin()->Checkpoint());
  cluster.KillServer(0);
  cluster.SetLeftAlone(2);
  cluster.StartServer(0);
  pusher.Expect(static_cast<float>(pusher.rounds()));
  cluster.AddServer();  // it learns from the leader that it has nothing
  EXPECT_EQ(RowsAt(&cluster, 1), 0);
  ASSERT_OK(cluster.ConnectAdmin()->RebalanceShards({}));
  EXPECT_GT(RowsAt(&cluster, 1), 0);
  pusher.Expect(static_cast<float>(pusher.rounds()));
}

// Rows have moved, and no server that is alive knows where: the clients do, and the checkpoint.
TEST(ElasticTest, ServersThatDieTogetherRestoreRowsThatHadMoved) {
  ClusterOptions options;
  options.servers = 2;
  options.workers = 1;
  options.checkpoints = true;
  options.threads = 2;
  Cluster cluster(options);
  Pusher pusher(&cluster, 0);
  pusher.Start();
  ASSERT_TRUE(pusher.MoreRounds(3));
  ASSERT_OK(cluster.ConnectAdmin()->RebalanceShards({.drain = {1}}, seconds(20)));
  ASSERT_TRUE(pusher.MoreRounds(3));
  pusher.Stop();
  EXPECT_EQ(RowsAt(&cluster, 1), 0);
  ASSERT_OK(cluster.ConnectAdmin()->Checkpoint());
  cluster.KillServer(0);
  cluster.KillServer(1);
  cluster.StartServer(0);
  cluster.StartServer(1);
  pusher.Expect(static_cast<float>(pusher.rounds()));
  ASSERT_OK(cluster.ConnectAdmin()->Checkpoint());
}

TEST_P(ElasticTest, CheckpointsAreExactWhileServersComeAndGo) {
  ClusterOptions options = Options(2);
  options.checkpoints = true;
  options.workers = 1;
  Cluster cluster(options);
  auto client = cluster.Connect(0);
  const TableRef table = client->CreateTable(DenseSpec("t", kKeys, kDim)).value();
  std::atomic<bool> stop{false};
  std::thread trains([&] {
    std::vector<Key> keys(kKeys);
    std::iota(keys.begin(), keys.end(), Key{0});
    const std::vector<float> ones(kKeys * kDim, 1.0f);
    for (int rounds = 1; !stop; ++rounds) {
      Ticket ticket;
      {
        Client::IssueScope scope(*client);
        ticket = client->Push(table, keys, ConstRows(ones.data(), kDim)).value();
        ASSERT_OK(client->SetProgress(std::to_string(rounds * int{kKeys} * int{kDim})));
      }
      if (rounds % 4 == 0) ASSERT_OK(client->Wait(ticket));
    }
    ASSERT_OK(client->Flush());
  });
  std::thread servers([&] {
    while (!stop) {
      cluster.AddServer();
      EXPECT_TRUE(Eventually([&] { return stop || RowsAt(&cluster, 2) > 0; }));
      ASSERT_OK(cluster.server(2).Leave(seconds(20)));
      cluster.RemoveServer(2);
    }
  });
  auto admin = cluster.ConnectAdmin();
  for (int taken = 0; taken < 5; ++taken) {
    Result<CheckpointInfo> info = admin->Checkpoint(seconds(60));
    // Servers that are gone abort it; another one does.
    for (int i = 0; i < 50 && !info.ok(); ++i) info = admin->Checkpoint(seconds(60));
    EXPECT_TRUE(info.ok()) << TextOf(info);
    if (!info.ok()) break;
    const CheckpointSum sum = SumCheckpoint(cluster.checkpoint_dir(), info->id);
    EXPECT_EQ(sum.values, sum.progress) << "checkpoint " << info->id;
    EXPECT_EQ(sum.by_table.at("t").size(), kKeys);
  }
  stop = true;
  trains.join();
  servers.join();
}

INSTANTIATE_TEST_SUITE_P(Doors, ElasticTest,
                         ::testing::Combine(::testing::Values(TransportKind::kInProcess,
                                                              TransportKind::kTcp,
                                                              TransportKind::kShared),
                                            ::testing::Values(1, 2)));

// It was sent before the marker and counted, to a server that has no rows any more and that whoever
// drives the checkpoint does not know, or cannot reach.
TEST(ElasticTest, ACheckpointWaitsForAPushThatIsOnItsWayToAServerThatHasLeft) {
  ClusterOptions options;
  options.servers = 3;
  options.workers = 1;
  options.checkpoints = true;
  Cluster cluster(options);
  TestProxy proxy(cluster.server(2).address());
  FixedMembers workers, drivers;
  for (size_t i = 0; i < 2; ++i) {
    workers.Set(i, cluster.server(static_cast<int>(i)).address());
    drivers.Set(i, cluster.server(static_cast<int>(i)).address());
  }
  workers.Set(2, proxy.address());
  auto client = Client::Connect(cluster.ClientOptionsOf(0), &workers);
  ASSERT_OK(client);
  const TableRef table = (*client)->CreateTable(DenseSpec("t", kKeys, kDim)).value();
  std::vector<Key> keys(kKeys);
  std::iota(keys.begin(), keys.end(), Key{0});
  const std::vector<float> ones(kKeys * kDim, 1.0f);
  proxy.Stall();
  const Ticket push = (*client)->Push(table, keys, ConstRows(ones.data(), kDim)).value();
  ASSERT_OK((*client)->SetProgress(std::to_string(kKeys * kDim)));
  ASSERT_OK(cluster.ConnectAdmin()->RebalanceShards({.drain = {2}}));

  auto admin = Admin::Connect(cluster.ClientOptionsOf(0), &drivers);
  ASSERT_OK(admin);
  const auto early = (*admin)->Checkpoint(milliseconds(300));
  EXPECT_EQ(early.status().code(), Code::kDeadlineExceeded) << TextOf(early);
  EXPECT_NE(TextOf(early).find("worker 0"), std::string::npos) << TextOf(early);
  proxy.Release();
  ASSERT_OK((*client)->Wait(push));
  const auto info = (*admin)->Checkpoint(seconds(20));
  ASSERT_OK(info);
  const CheckpointSum sum = SumCheckpoint(cluster.checkpoint_dir(), info->id);
  EXPECT_EQ(sum.values, kKeys * kDim);
  EXPECT_EQ(sum.values, sum.progress);
}

TEST(ElasticTest, TheLeaderStaysAndWhoKnowsNobodyToo) {
  ClusterOptions options;
  Cluster cluster(options);
  EXPECT_EQ(cluster.server(0).Leave(seconds(1)).code(), Code::kFailedPrecondition);
  ServerOptions alone;
  alone.index = 1;
  alone.servers = 2;
  alone.token = Cluster::kToken;
  auto server = Server::Start(alone);
  ASSERT_OK(server);
  EXPECT_EQ((*server)->Leave(seconds(1)).code(), Code::kFailedPrecondition);
}

TEST(ElasticTest, WhoLeavesBecauseTheJobEndsDoesNotWaitForLong) {
  ClusterOptions options;
  options.servers = 3;
  Cluster cluster(options);
  Pusher pusher(&cluster, 0);
  pusher.Start();
  ASSERT_TRUE(pusher.MoreRounds(1));
  pusher.Stop();
  cluster.KillServer(0);
  const TimePoint begin = RealClock::Get()->Now();
  EXPECT_EQ(cluster.server(2).Leave(seconds(60)).code(), Code::kUnavailable);
  EXPECT_LT(RealClock::Get()->Now() - begin, seconds(10));
}

TEST(ElasticTest, DrainedServersGetNothingByThemselves) {
  ClusterOptions options;
  options.servers = 3;
  options.balance = milliseconds(5);
  Cluster cluster(options);
  Pusher pusher(&cluster, 0);
  pusher.Start();
  ASSERT_TRUE(pusher.MoreRounds(1));
  auto admin = cluster.ConnectAdmin();
  ASSERT_OK(admin->RebalanceShards({.drain = {1}}));
  cluster.AddServer();
  // So the balancer is at work.
  EXPECT_TRUE(Eventually([&] { return RowsAt(&cluster, 3) > 0; }));
  EXPECT_EQ(RowsAt(&cluster, 1), 0u);
  ASSERT_OK(admin->RebalanceShards({}));
  EXPECT_GT(RowsAt(&cluster, 1), 0u);
  pusher.Stop();
  pusher.Expect(static_cast<float>(pusher.rounds()));
}

}  // namespace
}  // namespace shoal::ps
