// What a server keeps for those who do not belong to the job, and for those who only looked on.
#include <gtest/gtest.h>

#include "ps/lane/lane.h"
#include "ps/testing/test_cluster.h"
#include "ps/transport/local_socket.h"
#include "ps/transport/socket.h"

namespace shoal::ps {
namespace {

TEST(PsStrangers, SilentConnectionsLockNobodyOut) {
  Cluster cluster({.servers = 0});
  ServerOptions options;
  options.token = Cluster::kToken;
  options.handshake_timeout = std::chrono::hours(1);
  auto server = Server::Start(options);
  ASSERT_OK(server);
  const std::string address = (*server)->address();
  cluster.members.Set(0, address);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 300; ++i) {
    auto tcp = ConnectTcp(address, std::chrono::seconds(5));
    ASSERT_OK(tcp);
    silent.push_back(std::move(tcp).value());
    auto local = ConnectLocal(address);
    ASSERT_OK(local);
    silent.push_back(std::move(local).value());
  }
  for (const bool shared_memory : {false, true}) {
    auto client_options = cluster.ClientOptionsOf(shared_memory ? 1 : 0);
    client_options.shared_memory = shared_memory;
    client_options.connect_timeout = std::chrono::seconds(5);
    const auto client = Client::Connect(client_options, &cluster.members);
    ASSERT_OK(client);
    ASSERT_OK((*client)->CreateTable(DenseSpec("t", 10, 1)));
  }
  EXPECT_GE((*server)->counters().refused_connections, 88u);
}

class Silent final : public ServerConnection {
 public:
  void Reply(const FrameHeader&, std::string_view) override {}
  void CloseAfterFlush(const Status&) override {}
  void FlushReplies() override {}
};

TEST(PsStrangers, ObserversThatAreGoneAreForgotten) {
  const Partition partition(4, {1});
  Lane lane(&partition, {0, 0}, nullptr);
  FakeClock clock;
  const auto join = [&](int client, uint64_t session) {
    auto peer = std::make_shared<Silent>();
    Hello hello;
    hello.client = client;
    hello.session = session;
    Lane::Guard guard(lane);
    lane.ForgetObservers(clock.Now());
    EXPECT_TRUE(lane.Join(hello, peer).ok());
    return peer;
  };
  const auto stays = join(kObserver, 1);
  auto goes = join(kObserver, 2), leaves = join(kObserver, 3), worker = join(0, 4);
  lane.Leave(lane.FindSession(3));
  goes = leaves = worker = nullptr;
  auto another = join(kObserver, 5);
  EXPECT_EQ(lane.FindSession(3), nullptr);  // it said good-bye
  EXPECT_NE(lane.FindSession(2), nullptr);  // it may come back
  clock.Advance(std::chrono::minutes(59));
  another = join(kObserver, 6);
  EXPECT_NE(lane.FindSession(2), nullptr);
  clock.Advance(std::chrono::minutes(2));
  another = join(kObserver, 7);
  EXPECT_EQ(lane.FindSession(2), nullptr);
  EXPECT_NE(lane.FindSession(1), nullptr);
  EXPECT_NE(lane.FindSession(4), nullptr);  // a worker's clock and number stay
  EXPECT_EQ(lane.sessions().size(), 5u);    // 5 and 6 are younger
}

}  // namespace
}  // namespace shoal::ps
