// What programs of the public C++ door hear of servers that die, and how they stop a wait.
#include <gtest/gtest.h>
#include <shoal/ps.h>

#include <atomic>
#include <mutex>

namespace shoal::bindings {
namespace {

namespace v1 = ps::v1;

// Two servers of this process; the second may be started again.
class RestartsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int index = 0; index < 2; ++index) Start(index);
  }
  void Start(int index) {
    v1::ServerOptions options;
    options.index = index;
    options.servers = options.workers = 2;
    options.token = "secret";
    auto server = v1::Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status().message();
    const std::lock_guard lock(mu_);
    servers_[index] = std::move(*server);
    addresses_.resize(2);
    addresses_[static_cast<size_t>(index)] = servers_[index]->address();
  }
  std::unique_ptr<v1::Client> Connect(int index, v1::ClientHooks hooks) {
    v1::ClientOptions options;
    options.index = index;
    options.token = "secret";
    options.find_servers = [this] {
      const std::lock_guard lock(mu_);
      return addresses_;
    };
    auto client = v1::Client::Connect(std::move(options), std::move(hooks));
    EXPECT_TRUE(client.ok()) << client.status().message();
    return client.ok() ? std::move(*client) : nullptr;
  }
  // A push of ones to all rows, the servers' answer waited for.
  v1::Status Push(v1::Client* client, const v1::Table& table) {
    std::vector<v1::Key> keys(table.rows);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
    const std::vector<float> ones(keys.size(), 1.0f);
    const auto ticket = client->Push(table, keys, ones);
    return ticket.ok() ? client->Wait(*ticket) : ticket.status();
  }

  std::mutex mu_;
  std::map<int, std::unique_ptr<v1::Server>> servers_;
  std::vector<std::string> addresses_;  // guarded by mu_
};

TEST_F(RestartsTest, AProgramFailsUnlessItAcceptsTheLoss) {
  const auto strict = Connect(0, {});
  std::atomic<int> told{0};
  v1::ClientHooks hooks;
  hooks.accept_data_loss = true;
  hooks.on_server_restart = [&](int server, int64_t checkpoint) {
    told += server == 1 && checkpoint == -1;
  };
  const auto tolerant = Connect(1, std::move(hooks));
  ASSERT_TRUE(strict != nullptr && tolerant != nullptr);
  const auto table = strict->CreateTable({.name = "t", .rows = 100});
  ASSERT_TRUE(table.ok()) << table.status().message();
  ASSERT_TRUE(tolerant->CreateTable({.name = "t", .rows = 100}).ok());
  servers_.erase(1);
  Start(1);
  EXPECT_TRUE(Push(tolerant.get(), *table).ok());
  EXPECT_EQ(told, 1);
  EXPECT_EQ(tolerant->server_restarts(), 1);
  const v1::Status lost = Push(strict.get(), *table);
  EXPECT_EQ(lost.code(), v1::Code::kDataLoss) << lost.message();
}

TEST_F(RestartsTest, AWaitEndsWhenTheProgramIsInterrupted) {
  std::atomic<bool> interrupted{false};
  v1::ClientHooks hooks;
  hooks.interrupted = [&] { return interrupted.load(); };
  const auto client = Connect(0, std::move(hooks));
  ASSERT_NE(client, nullptr);
  interrupted = true;
  EXPECT_EQ(client->Barrier("b", std::chrono::hours(1)).code(), v1::Code::kCancelled);
}

}  // namespace
}  // namespace shoal::bindings
