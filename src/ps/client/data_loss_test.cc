// A server that dies and comes back without its rows: a client goes on only where it said that it
// makes good for them.
#include <gtest/gtest.h>

#include <atomic>

#include "ps/testing/test_cluster.h"

namespace shoal::ps {
namespace {

constexpr size_t kRows = 120;

ClusterOptions TwoServers(bool checkpoints) {
  ClusterOptions options;
  options.workers = 1;
  options.checkpoints = checkpoints;
  return options;
}

std::unique_ptr<Client> ConnectStrict(Cluster* cluster, std::atomic<int64_t>* told) {
  ClientOptions options = cluster->ClientOptionsOf(0);
  options.fail_on_data_loss = true;
  options.on_server_restart = [told](int, int64_t checkpoint) { *told = checkpoint; };
  auto client = Client::Connect(std::move(options), &cluster->members);
  EXPECT_TRUE(client.ok()) << client.status().ToString();
  return client.ok() ? std::move(client).value() : nullptr;
}

Status PushOnes(Client* client, const TableRef& table) {
  std::vector<Key> keys(kRows);
  for (size_t i = 0; i < kRows; ++i) keys[i] = i;
  const std::vector<float> ones(kRows, 1.0f);
  TRY_ASSIGN(const Ticket ticket, client->Push(table, keys, ConstRows(ones.data(), 1)));
  return client->Wait(ticket);
}

TEST(PsDataLoss, EveryCallFailsAfterAServerCameBackEmpty) {
  Cluster cluster(TwoServers(false));
  std::atomic<int64_t> told{-2};
  const auto client = ConnectStrict(&cluster, &told);
  ASSERT_NE(client, nullptr);
  const auto table = client->CreateTable(DenseSpec("t", kRows, 1));
  ASSERT_OK(table);
  ASSERT_OK(PushOnes(client.get(), *table));
  cluster.KillServer(1);
  cluster.StartServer(1);
  // The first push may wait for the connection to come back: it must not be answered.
  const Status lost = PushOnes(client.get(), *table);
  EXPECT_EQ(lost.code(), Code::kDataLoss) << lost.message();
  EXPECT_NE(lost.message().find("server 1 died and came back empty"), std::string::npos)
      << lost.message();
  EXPECT_EQ(told, -1);
  EXPECT_EQ(client->server_restarts(), 1);
  // Also what concerns only the server that lived.
  const Key key = 0;
  float row = 0;
  const auto pull = client->Pull(*table, {&key, 1}, Rows(&row, 1));
  ASSERT_OK(pull);
  EXPECT_EQ(client->Wait(*pull).code(), Code::kDataLoss);
  EXPECT_EQ(client->Flush().code(), Code::kDataLoss);
  EXPECT_EQ(client->Barrier("b").code(), Code::kDataLoss);
  EXPECT_EQ(client->GetBlob("b").status().code(), Code::kDataLoss);
  EXPECT_EQ(client->CreateTable(DenseSpec("u", 1, 1)).status().code(), Code::kDataLoss);
  EXPECT_EQ(client->Leave().code(), Code::kDataLoss);
}

TEST(PsDataLoss, AClientThatComesLaterHearsOfIt) {
  Cluster cluster(TwoServers(false));
  std::atomic<int64_t> told{-2};
  {
    const auto client = ConnectStrict(&cluster, &told);
    ASSERT_NE(client, nullptr);
    // Nothing is lost with a server that nobody has used.
    cluster.KillServer(1);
    cluster.StartServer(1);
  }
  {
    const auto client = ConnectStrict(&cluster, &told);
    ASSERT_NE(client, nullptr);
    ASSERT_OK(client->CreateTable(DenseSpec("t", kRows, 1)));
  }
  cluster.KillServer(1);
  cluster.StartServer(1);
  ClientOptions options = cluster.ClientOptionsOf(0);
  options.fail_on_data_loss = true;
  const auto late = Client::Connect(options, &cluster.members);
  EXPECT_EQ(late.status().code(), Code::kDataLoss) << late.status().message();
  EXPECT_NE(cluster.Connect(1), nullptr);  // accepts it
}

TEST(PsDataLoss, AnIdleClientHearsOfItToo) {
  Cluster cluster(TwoServers(false));
  std::atomic<int64_t> told{-2};
  const auto client = ConnectStrict(&cluster, &told);
  ASSERT_NE(client, nullptr);
  const auto table = client->CreateTable(DenseSpec("t", kRows, 1));
  ASSERT_OK(table);
  cluster.KillServer(0);
  cluster.StartServer(0);
  ASSERT_TRUE(Eventually([&] { return told == -1; }));
  ASSERT_TRUE(Eventually([&] { return client->Flush().code() == Code::kDataLoss; }));
}

TEST(PsDataLoss, AClientGoesOnFromACheckpoint) {
  Cluster cluster(TwoServers(true));
  std::atomic<int64_t> told{-2};
  const auto client = ConnectStrict(&cluster, &told);
  ASSERT_NE(client, nullptr);
  const auto table = client->CreateTable(DenseSpec("t", kRows, 1));
  ASSERT_OK(table);
  ASSERT_OK(PushOnes(client.get(), *table));
  ASSERT_OK(cluster.ConnectAdmin()->Checkpoint());
  cluster.KillServer(1);
  cluster.StartServer(1);
  ASSERT_OK(PushOnes(client.get(), *table));
  EXPECT_EQ(told, 0);
  const Key key = 1;
  float row = 0;
  const auto pull = client->Pull(*table, {&key, 1}, Rows(&row, 1));
  ASSERT_OK(pull);
  ASSERT_OK(client->Wait(*pull));
  EXPECT_EQ(row, 2);
}

}  // namespace
}  // namespace shoal::ps
