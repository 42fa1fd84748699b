#include "rendezvous/coordinator/log_collector.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/file.h"
#include "rendezvous/coordinator/fake_connection.h"
#include "rendezvous/lifecycle/core_driver.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

class LogCollectorTest : public testing::Test {
 protected:
  LogCollectorTest() {
    members_.Add(members_.NextId(), std::make_unique<FakeConnection>(&launcher_));
    driver_.JoinAll();
  }
  static ProgramEnded End() {
    ProgramEnded ended;
    ended.member = 1;
    ended.attempt = 0;
    return ended;
  }
  std::string Frame(int attempt, int64_t offset, const std::string& text) {
    return EncodeLogFrame({"another", 7, attempt}, offset, text);
  }

  TempDir dir_{std::move(*TempDir::Create())};
  net::Loop loop_;
  FakeLog launcher_;
  CoreDriver driver_{Make(1, 0)};
  MemberTable members_;
  EventPublisher publisher_{dir_.path()};
  std::vector<std::string> notes_;
  std::vector<ProgramEnded> ended_;
  LogCollector logs_{&loop_,
                     dir_.path(),
                     &driver_.core,
                     &members_,
                     &publisher_,
                     {[this](const std::string& text) { notes_.push_back(text); },
                      [this](const ProgramEnded& one) { ended_.push_back(one); }}};
};

TEST_F(LogCollectorTest, LinesBelongToTheLaunchersOwnTask) {
  ASSERT_TRUE(logs_.Store(1, Frame(0, 0, "hello\n")).ok());
  const auto text = ReadFile(dir_.path() / LogFileName({"worker", 0, 0}), 100);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "hello\n");
  EXPECT_TRUE(launcher_.messages.empty());
  logs_.AckAll();
  ASSERT_EQ(launcher_.messages.size(), 1u);
  EXPECT_EQ(launcher_.messages[0].first, "log_ack");
  EXPECT_EQ(launcher_.messages[0].second.at("bytes").to_number<int64_t>(), 6);
}

TEST_F(LogCollectorTest, LinesOfNoTaskOrOfAnAttemptThatWasNotStartedAreErrors) {
  EXPECT_EQ(logs_.Store(2, Frame(0, 0, "x")).code(), Code::kFailedPrecondition);
  EXPECT_EQ(logs_.Store(1, Frame(1, 0, "x")).code(), Code::kInvalidArgument);
  EXPECT_FALSE(logs_.Store(1, "x").ok());
  EXPECT_EQ(logs_.HandleGrowth(1, {{"attempt", 1}, {"bytes", 1}}).code(), Code::kInvalidArgument);
  EXPECT_FALSE(logs_.HandleMirrored({{"role", "worker"}, {"index", 1}, {"attempt", 0}}).ok());
}

TEST_F(LogCollectorTest, AnEndIsGivenOnceItsLinesAreStored) {
  ASSERT_TRUE(logs_.Store(1, Frame(0, 0, "hello\n")).ok());
  logs_.HoldEnd(0, End());
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].member, 1u);
}

TEST_F(LogCollectorTest, AnEndWithoutATaskIsGivenAtOnce) {
  logs_.HoldEnd(std::nullopt, End());
  EXPECT_EQ(ended_.size(), 1u);
}

TEST_F(LogCollectorTest, MirroredLinesAreAcknowledgedOnlyWhenTheControllerHasThem) {
  logs_.SetMirrored(true);
  ASSERT_TRUE(logs_.Store(1, Frame(0, 0, "hello\n")).ok());
  logs_.AckAll();
  for (const auto& [type, fields] : launcher_.messages)
    EXPECT_EQ(fields.at("bytes").to_number<int64_t>(), 0);
  launcher_.messages.clear();
  ASSERT_TRUE(
      logs_.HandleMirrored({{"role", "worker"}, {"index", 0}, {"attempt", 0}, {"bytes", 6}}).ok());
  logs_.AckAll();
  ASSERT_FALSE(launcher_.messages.empty());
  EXPECT_EQ(launcher_.messages.back().second.at("bytes").to_number<int64_t>(), 6);
}

}  // namespace
}  // namespace shoal::rendezvous
