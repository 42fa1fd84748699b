// What the doors read: the environment of a task, ps-lite's variables, messages of nodes.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "base/bytes.h"
#include "base/file.h"
#include "door/environment.h"
#include "door/lite/line.h"
#include "door/lite/seat.h"
#include "ps/socket.h"

namespace shoal::door {
namespace {

constexpr const char* kCluster =
    R"({"generation":1,"roles":{"scheduler":["127.0.0.1:7000"],"server":["127.0.0.1:7001","127.0.0.1:7002"],)"
    R"("worker":["127.0.0.1:0","127.0.0.1:0","127.0.0.1:0"]}})";

class DoorTest : public ::testing::Test {
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

TEST_F(DoorTest, ATaskFindsItsPlaceItsServersAndItsToken) {
  const auto place = ReadPlace(env_);
  ASSERT_TRUE(place.ok()) << place.status().message();
  EXPECT_EQ(place->role, "worker");
  EXPECT_EQ(place->index, 2);
  EXPECT_EQ(place->token, "secret");
  EXPECT_EQ(CountOf(place->cluster, "worker"), 3);
  EXPECT_EQ(CountOf(place->cluster, "nobody"), 0);
  const auto servers = AddressesOf(place->cluster, "server");
  ASSERT_TRUE(servers.ok());
  EXPECT_EQ(*servers, (std::vector<std::string>{"127.0.0.1:7001", "127.0.0.1:7002"}));
}

TEST_F(DoorTest, WhatIsMissingIsNamed) {
  Environment env = env_;
  env.erase("SHOAL_CLUSTER");
  EXPECT_NE(ReadPlace(env).status().message().find("shoal run"), std::string::npos);
  env = env_;
  env["SHOAL_INDEX"] = "3";
  EXPECT_NE(ReadPlace(env).status().message().find("no task worker-3"), std::string::npos);
  env["SHOAL_INDEX"] = "x";
  EXPECT_NE(ReadPlace(env).status().message().find("SHOAL_INDEX: got x"), std::string::npos);
  env = env_;
  env.erase("SHOAL_TOKEN_FILE");
  EXPECT_NE(ReadPlace(env).status().message().find("SHOAL_TOKEN_FILE"), std::string::npos);
  const auto place = ReadPlace(env_);
  EXPECT_NE(AddressesOf(place->cluster, "ps").status().message().find("scheduler, server, worker"),
            std::string::npos);
  EXPECT_NE(AddressesOf(place->cluster, "worker").status().message().find("ports: [ps]"),
            std::string::npos);
}

TEST_F(DoorTest, ServersThatMoveAreFoundAgain) {
  Environment env = env_;
  Write("cluster", kCluster);
  env["SHOAL_CLUSTER_FILE"] = (dir_->path() / "cluster").string();
  Addresses addresses(env, "server", {"first"});
  EXPECT_EQ(addresses.Current()[1], "127.0.0.1:7002");
  std::string moved = kCluster;
  moved.replace(moved.find("7002"), 4, "7009");
  Write("cluster", moved);
  EXPECT_EQ(addresses.Current()[1], "127.0.0.1:7009");
  Write("cluster", "rubbish");
  EXPECT_EQ(addresses.Current()[1], "127.0.0.1:7009");
}

TEST_F(DoorTest, ASeatComesFromAJobOrFromDmlcVariables) {
  const auto shoal = FindSeat(env_);
  ASSERT_TRUE(shoal.ok()) << shoal.status().message();
  EXPECT_EQ(shoal->role, SeatRole::kWorker);
  EXPECT_EQ(shoal->root, "127.0.0.1:7000");
  EXPECT_EQ(shoal->wanted_rank, 2);
  Environment dmlc = {{"DMLC_ROLE", "server"},
                      {"DMLC_NUM_WORKER", "3"},
                      {"DMLC_NUM_SERVER", "2"},
                      {"DMLC_PS_ROOT_URI", "127.0.0.1"},
                      {"DMLC_PS_ROOT_PORT", "9000"}};
  const auto seat = FindSeat(dmlc);
  ASSERT_TRUE(seat.ok()) << seat.status().message();
  EXPECT_EQ(seat->role, SeatRole::kServer);
  EXPECT_EQ(seat->workers, 3);
  EXPECT_EQ(seat->servers, 2);
  EXPECT_EQ(seat->root, "127.0.0.1:9000");
  EXPECT_EQ(seat->host, "127.0.0.1");
  for (const char* name : {"DMLC_NUM_WORKER", "DMLC_NUM_SERVER", "DMLC_PS_ROOT_PORT"}) {
    Environment bad = dmlc;
    bad[name] = "-1";
    EXPECT_NE(FindSeat(bad).status().message().find(name), std::string::npos);
  }
  dmlc["DMLC_PS_ROOT_URI"] = "10.0.0.1";
  dmlc["DMLC_NODE_HOST"] = "10.0.0.2";
  EXPECT_EQ(FindSeat(dmlc).status().code(), Code::kFailedPrecondition);
  dmlc["SHOAL_TOKEN_FILE"] = (dir_->path() / "token").string();
  EXPECT_TRUE(FindSeat(dmlc).ok());
}

TEST(LetterHeadTest, IsTheOneInTheDocumentation) {
  Message message;
  message.request = message.pull = true;
  message.sender = 9;
  message.recver = 8;
  message.timestamp = 5;
  message.head = 7;
  const LetterHead head = HeadOf(message);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&head);
  EXPECT_EQ(bytes[6], 5);
  EXPECT_EQ(bytes[28], 7);
  // docs/formats/lite-wire.md
  EXPECT_EQ(head.crc, 0x2cafdf63u);
}

TEST(LetterHeadTest, BoundsAreChecked) {
  Message message;
  message.parts.resize(2);
  LetterHead head = HeadOf(message);
  const auto read = [&] {
    head.crc = Crc32c(&head, sizeof head - sizeof head.crc);
    LetterHead out;
    return ReadLetterHead({reinterpret_cast<const char*>(&head), sizeof head}, &out);
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

// Who dials and who listens, each with a token of its own.
std::pair<Status, Status> Meet(const std::string& dials, const std::string& listens,
                               std::unique_ptr<Line>* one, std::unique_ptr<Line>* other) {
  uint16_t port = 0;
  const auto listener = ps::ListenTcp("127.0.0.1", 0, &port);
  EXPECT_TRUE(listener.ok());
  Status accepted;
  std::thread thread([&] {
    EXPECT_TRUE(
        ps::WaitSocket(listener->get(), POLLIN, RealClock::Get()->Now() + std::chrono::seconds(20))
            .ok());
    auto line = Line::Accept(UniqueFd(::accept(listener->get(), nullptr, nullptr)), listens);
    accepted = line.status();
    if (line.ok()) *other = std::move(*line);
  });
  auto line = Line::Dial("127.0.0.1:" + std::to_string(port), dials, std::chrono::seconds(20));
  if (line.ok()) *one = std::move(*line);
  thread.join();
  return {line.status(), accepted};
}

TEST(LineTest, AMessageComesAsItWent) {
  std::unique_ptr<Line> one, other;
  const auto [dialled, accepted] = Meet("t", "t", &one, &other);
  ASSERT_TRUE(dialled.ok() && accepted.ok());
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
  one->Shut();
  EXPECT_EQ(other->Receive(&got).code(), Code::kUnavailable);
}

TEST(LineTest, BothMustKnowTheToken) {
  std::unique_ptr<Line> one, other;
  const auto [dialled, accepted] = Meet("t", "u", &one, &other);
  EXPECT_FALSE(dialled.ok());
  EXPECT_EQ(accepted.code(), Code::kUnauthenticated);
}

}  // namespace
}  // namespace shoal::door
