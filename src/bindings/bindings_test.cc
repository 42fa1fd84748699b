// What the doors read: the environment of a task, ps-lite's variables, messages of nodes.
#include <gtest/gtest.h>
#include <poll.h>
#include <shoal/ps.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "base/bytes.h"
#include "base/file.h"
#include "bindings/environment.h"
#include "bindings/owner_process.h"
#include "bindings/ps_lite/acceptor.h"
#include "bindings/ps_lite/connection.h"
#include "bindings/ps_lite/node_config.h"
#include "ps/transport/socket.h"

namespace shoal::bindings {
namespace {

constexpr const char* kCluster =
    R"({"generation":1,"roles":{"scheduler":["127.0.0.1:7000"],"server":["127.0.0.1:7001","127.0.0.1:7002"],)"
    R"("worker":["127.0.0.1:0","127.0.0.1:0","127.0.0.1:0"]}})";

class BindingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::Create();
    ASSERT_TRUE(made.ok());
    dir_ = std::make_unique<TempDir>(std::move(made).value());
    Write("token", "secret\n");
    env_ = {{"SHOAL_CLUSTER", kCluster},
            {"SHOAL_ROLE", "worker"},
            {"SHOAL_INDEX", "2"},
            {"SHOAL_TOKEN_FILE", (dir_->path() / "token").string()}};
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(dir_->path() / name, text, 0600, false).ok());
  }
  std::unique_ptr<TempDir> dir_;
  Environment env_;
};

TEST_F(BindingsTest, ATaskFindsItsPlaceItsServersAndItsToken) {
  const auto task = ReadTaskIdentity(env_);
  ASSERT_TRUE(task.ok()) << task.status().message();
  EXPECT_EQ(task->role, "worker");
  EXPECT_EQ(task->index, 2);
  EXPECT_EQ(task->token, "secret");
  EXPECT_EQ(TaskCount(task->cluster, "worker"), 3);
  EXPECT_EQ(TaskCount(task->cluster, "nobody"), 0);
  const auto servers = AddressesOf(task->cluster, "server");
  ASSERT_TRUE(servers.ok());
  EXPECT_EQ(*servers, (std::vector<std::string>{"127.0.0.1:7001", "127.0.0.1:7002"}));
}

TEST_F(BindingsTest, WhatIsMissingIsNamed) {
  Environment env = env_;
  env.erase("SHOAL_CLUSTER");
  EXPECT_NE(ReadTaskIdentity(env).status().message().find("shoal run"), std::string::npos);
  env = env_;
  env["SHOAL_INDEX"] = "3";
  EXPECT_NE(ReadTaskIdentity(env).status().message().find("no task worker-3"), std::string::npos);
  env["SHOAL_INDEX"] = "x";
  EXPECT_NE(ReadTaskIdentity(env).status().message().find("SHOAL_INDEX: got x"), std::string::npos);
  env = env_;
  env.erase("SHOAL_TOKEN_FILE");
  EXPECT_NE(ReadTaskIdentity(env).status().message().find("SHOAL_TOKEN_FILE"), std::string::npos);
  Write("token", "\n");
  EXPECT_EQ(ReadTaskIdentity(env_).status().code(), Code::kInvalidArgument);
  EXPECT_NE(ReadTaskIdentity(env_).status().message().find("is empty"), std::string::npos);
  Write("token", "secret\n");
  const auto task = ReadTaskIdentity(env_);
  EXPECT_NE(AddressesOf(task->cluster, "ps").status().message().find("scheduler, server, worker"),
            std::string::npos);
  EXPECT_NE(AddressesOf(task->cluster, "worker").status().message().find("ports: [ps]"),
            std::string::npos);
}

TEST_F(BindingsTest, ServersThatMoveAreFoundAgain) {
  Environment env = env_;
  Write("cluster", kCluster);
  env["SHOAL_CLUSTER_FILE"] = (dir_->path() / "cluster").string();
  RoleAddresses addresses(env, "server", {"first"});
  EXPECT_EQ(addresses.Current()[1], "127.0.0.1:7002");
  std::string moved = kCluster;
  moved.replace(moved.find("7002"), 4, "7009");
  Write("cluster", moved);
  EXPECT_EQ(addresses.Current()[1], "127.0.0.1:7009");
  Write("cluster", "rubbish");
  EXPECT_EQ(addresses.Current()[1], "127.0.0.1:7009");
}

TEST_F(BindingsTest, ASeatComesFromAJobOrFromDmlcVariables) {
  const auto shoal = ReadNodeConfig(env_);
  ASSERT_TRUE(shoal.ok()) << shoal.status().message();
  EXPECT_EQ(shoal->role, NodeRole::kWorker);
  EXPECT_EQ(shoal->root, "127.0.0.1:7000");
  EXPECT_EQ(shoal->wanted_rank, 2);
  Environment dmlc = {{"DMLC_ROLE", "server"},
                      {"DMLC_NUM_WORKER", "3"},
                      {"DMLC_NUM_SERVER", "2"},
                      {"DMLC_PS_ROOT_URI", "127.0.0.1"},
                      {"DMLC_PS_ROOT_PORT", "9000"}};
  const auto config = ReadNodeConfig(dmlc);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->role, NodeRole::kServer);
  EXPECT_EQ(config->workers, 3);
  EXPECT_EQ(config->servers, 2);
  EXPECT_EQ(config->root, "127.0.0.1:9000");
  EXPECT_EQ(config->host, "127.0.0.1");
  // Jobs of one machine have not all the same token.
  EXPECT_TRUE(config->token_of_session);
  Environment other = dmlc;
  other["DMLC_PS_ROOT_PORT"] = "9001";
  EXPECT_NE(ReadNodeConfig(other)->token, config->token);
  for (const char* name : {"DMLC_NUM_WORKER", "DMLC_NUM_SERVER", "DMLC_PS_ROOT_PORT"}) {
    Environment bad = dmlc;
    bad[name] = "-1";
    EXPECT_NE(ReadNodeConfig(bad).status().message().find(name), std::string::npos);
  }
  dmlc["DMLC_PS_ROOT_URI"] = "10.0.0.1";
  dmlc["DMLC_NODE_HOST"] = "10.0.0.2";
  EXPECT_EQ(ReadNodeConfig(dmlc).status().code(), Code::kFailedPrecondition);
  dmlc["SHOAL_TOKEN_FILE"] = (dir_->path() / "token").string();
  EXPECT_TRUE(ReadNodeConfig(dmlc).ok());
  Write("token", "");
  EXPECT_EQ(ReadNodeConfig(dmlc).status().code(), Code::kInvalidArgument);
}

TEST(MessageHeaderTest, IsTheOneInTheDocumentation) {
  Message message;
  message.request = message.pull = true;
  message.sender = 9;
  message.recver = 8;
  message.timestamp = 5;
  message.head = 7;
  const MessageHeader head = MakeHeader(message);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&head);
  EXPECT_EQ(bytes[6], 5);
  EXPECT_EQ(bytes[28], 7);
  // docs/formats/lite-wire.md
  EXPECT_EQ(head.crc, 0x2cafdf63u);
}

TEST(MessageHeaderTest, BoundsAreChecked) {
  Message message;
  message.parts.resize(2);
  MessageHeader head = MakeHeader(message);
  const auto read = [&] {
    head.crc = Crc32c(&head, sizeof head - sizeof head.crc);
    MessageHeader out;
    return ReadMessageHeader({reinterpret_cast<const char*>(&head), sizeof head}, &out);
  };
  EXPECT_TRUE(read().ok());
  head.part[2] = 1;
  EXPECT_EQ(read().code(), Code::kInvalidArgument);
  head.part[2] = 0;
  head.part[1] = kMaxParts + 1;
  EXPECT_EQ(read().code(), Code::kInvalidArgument);
  head.part[1] = 0;
  head.body = kMaxBody + 1;
  EXPECT_EQ(read().code(), Code::kInvalidArgument);
  head.body = 0;
  head.version = 2;
  EXPECT_EQ(read().code(), Code::kFailedPrecondition);
}

// A listener with a token, and the connections whose other side proved it.
class Listening {
 public:
  explicit Listening(const std::string& token) {
    auto listener = ps::ListenTcp("127.0.0.1", 0, &port_);
    EXPECT_TRUE(listener.ok());
    auto acceptor = Acceptor::Start(std::move(*listener), token, [this](auto line) {
      const std::lock_guard lock(mu_);
      connections_.push_back(std::move(line));
      changed_.notify_all();
    });
    EXPECT_TRUE(acceptor.ok());
    acceptor_ = std::move(*acceptor);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // The next connection; null if none comes.
  std::unique_ptr<Connection> Next() {
    std::unique_lock lock(mu_);
    if (!changed_.wait_for(lock, std::chrono::seconds(20),
                           [this] { return !connections_.empty(); }))
      return nullptr;
    auto line = std::move(connections_.front());
    connections_.pop_front();
    return line;
  }
  size_t accepted() {
    const std::lock_guard lock(mu_);
    return connections_.size();
  }

 private:
  uint16_t port_ = 0;
  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Connection>> connections_;  // guarded by mu_
  std::unique_ptr<Acceptor> acceptor_;                   // the last one
};

constexpr auto kPatience = std::chrono::seconds(20);

TEST(ConnectionTest, AMessageComesAsItWent) {
  Listening listening("t");
  const auto dialled = Connection::Dial(listening.address(), "t", kPatience);
  ASSERT_TRUE(dialled.ok()) << dialled.status().message();
  const auto& one = *dialled;
  const auto other = listening.Next();
  ASSERT_NE(other, nullptr);
  Message message;
  message.head = 3;
  message.body = "body";
  const auto memory = std::make_shared<std::vector<float>>(1000, 2.5f);
  message.parts = {{memory, memory->data(), 4000}, {memory, memory->data(), 0}};
  Message got;
  ASSERT_TRUE(one->Send(message).ok());
  ASSERT_TRUE(other->Receive(&got).ok());
  EXPECT_EQ(got.body, "body");
  ASSERT_EQ(got.parts.size(), 2u);
  EXPECT_EQ(std::memcmp(got.parts[0].data, memory->data(), 4000), 0);
  EXPECT_EQ(got.parts[1].size, 0u);
  one->Shutdown();
  EXPECT_EQ(other->Receive(&got).code(), Code::kUnavailable);
}

TEST(ConnectionTest, BothMustKnowTheToken) {
  Listening listening("t");
  const auto dialled = Connection::Dial(listening.address(), "u", kPatience);
  EXPECT_EQ(dialled.status().code(), Code::kUnauthenticated);
  EXPECT_NE(dialled.status().message().find(listening.address()), std::string::npos);
  EXPECT_EQ(listening.accepted(), 0u);
}

TEST(ConnectionTest, StrangersKeepNobodyOut) {
  Listening listening("t");
  std::vector<UniqueFd> strangers;
  for (size_t i = 0; i < 2 * Acceptor::kMaxUnproven; ++i) {
    auto fd = ps::ConnectTcp(listening.address(), kPatience);
    ASSERT_TRUE(fd.ok()) << fd.status().message();
    strangers.push_back(std::move(*fd));
    const std::string rubbish(i % 3 == 0 ? 0 : i % 3 == 1 ? 7 : 4096, 'x');
    (void)ps::SendSome(strangers.back().get(), rubbish.data(), rubbish.size());
  }
  EXPECT_TRUE(Connection::Dial(listening.address(), "t", kPatience).ok());
  EXPECT_NE(listening.Next(), nullptr);
  EXPECT_EQ(listening.accepted(), 0u);
  // Those that are too many have been let go.
  char byte[128];
  ASSERT_TRUE(ps::WaitSocket(strangers[0].get(), POLLIN, RealClock::Get()->Now() + kPatience).ok());
  long got = 1;
  while (got > 0 || (got < 0 && errno == EAGAIN)) {
    ASSERT_TRUE(
        ps::WaitSocket(strangers[0].get(), POLLIN, RealClock::Get()->Now() + kPatience).ok());
    got = ps::ReceiveSome(strangers[0].get(), byte, sizeof byte);
  }
  EXPECT_LE(got, 0);
}

// ---- Forked children ----------------------------------------------------------------------------

// Runs it in a forked child; what it returned.
int InChild(const std::function<bool()>& run) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(OwnerProcessTest, AChildIsAnotherProcessAndItsOwn) {
  const OwnerProcess here;
  EXPECT_TRUE(here.Check("it", "make another").ok());
  EXPECT_EQ(InChild([&] {
              const Status refused = here.Check("it", "make another");
              const OwnerProcess own;
              const bool grandchild = InChild([&] {
                                        return !here.IsThisProcess() && !own.IsThisProcess() &&
                                               OwnerProcess().IsThisProcess();
                                      }) == 0;
              return !here.IsThisProcess() && refused.code() == Code::kFailedPrecondition &&
                     refused.message().find("make another") != std::string::npos &&
                     own.IsThisProcess() && grandchild;
            }),
            0);
  EXPECT_TRUE(here.IsThisProcess());
}

TEST(OwnerProcessTest, AChildMayNotBeTheSameWorkerWhileItsParentIs) {
  constexpr uint64_t kJob = 7;
  {
    const ConnectedWorker worker(3, kJob);
    EXPECT_TRUE(ConnectedWorker::Check(3, kJob).ok());  // of the same process: as ever
    EXPECT_EQ(InChild([] {
                return ConnectedWorker::Check(3, kJob).code() == Code::kFailedPrecondition &&
                       ConnectedWorker::Check(4, kJob).ok() && ConnectedWorker::Check(3, 8).ok();
              }),
              0);
  }
  EXPECT_EQ(InChild([] { return ConnectedWorker::Check(3, kJob).ok(); }), 0);
  // One that ended without saying so is no obstacle.
  EXPECT_EQ(InChild([] {
              new ConnectedWorker(5, kJob);
              return true;
            }),
            0);
  EXPECT_TRUE(ConnectedWorker::Check(5, kJob).ok());
}

TEST(OwnerProcessTest, AClientAndAServerAreLeftAloneInAChild) {
  namespace v1 = ps::v1;
  auto server = v1::Server::Start({.token = "t"}).value();
  auto client = v1::Client::Connect({.servers = {server->address()}, .token = "t"}).value();
  const v1::Table table = client->CreateTable({.name = "t", .rows = 4, .dim = 1}).value();
  const std::vector<v1::Key> keys = {0, 1, 2, 3};
  const std::vector<float> ones(4, 1.0f);
  std::vector<float> rows(4);
  for (int i = 0; i < 10; ++i) {
    const v1::Ticket ticket = client->Push(table, keys, ones).value();
    EXPECT_EQ(InChild([&] {
                bool refused = client->Pull(table, keys, rows).status().code() ==
                                   v1::Code::kFailedPrecondition &&
                               client->Wait(ticket).code() == v1::Code::kFailedPrecondition &&
                               client->Done(ticket) &&
                               client->Flush().code() == v1::Code::kFailedPrecondition;
                client.reset();
                server.reset();
                return refused;
              }),
              0);
    EXPECT_TRUE(client->Wait(ticket).ok());
  }
  const v1::Ticket ticket = client->Pull(table, keys, rows).value();
  EXPECT_TRUE(client->Wait(ticket).ok());
  EXPECT_EQ(rows, std::vector<float>(4, 10.0f));
}

TEST(ListenTest, TwoServersDoNotShareAPort) {
  namespace v1 = ps::v1;
  auto server = v1::Server::Start({.token = "t"}).value();
  const std::string address = server->address();
  const auto port = static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  const auto second = v1::Server::Start({.token = "t", .port = port});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find(address), std::string::npos)
      << second.status().message();
  server.reset();
  EXPECT_TRUE(v1::Server::Start({.token = "t", .port = port}).ok());
}

TEST(TableMemoryTest, ADenseTableThatNoMachineHoldsIsRefused) {
  namespace v1 = ps::v1;
  auto server = v1::Server::Start({.token = "t", .threads = 2}).value();
  auto client = v1::Client::Connect({.servers = {server->address()}, .token = "t"}).value();
  const auto refused = client->CreateTable({.name = "huge", .rows = 1ull << 40, .dim = 4}).status();
  EXPECT_EQ(refused.code(), v1::Code::kResourceExhausted);
  EXPECT_NE(refused.message().find("sparse"), std::string::npos) << refused.message();
  EXPECT_TRUE(client->CreateTable({.name = "huge", .rows = 100, .dim = 4}).ok());
}

}  // namespace
}  // namespace shoal::bindings
