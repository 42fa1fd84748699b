// Reading, selecting and following logs.

#include "controller/files/log_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "rendezvous/logs/log_segment.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Duration kPatience = std::chrono::seconds(20);

class LogStoreTest : public testing::Test {
 protected:
  LogStoreTest() : place_(std::move(*TempDir::Create())), logs_(place_.path()) {
    EXPECT_TRUE(MakeDirectories(place_.path() / "logs").ok());
  }
  void Append(const LogKey& key, std::string_view text) {
    auto writer = rendezvous::LogWriter::Open(place_.path() / "logs", key);
    ASSERT_TRUE(writer.ok()) << writer.status().ToString();
    ASSERT_TRUE(writer->Append(writer->size(), text).ok());
  }
  std::vector<std::string> Names(const Result<std::vector<LogInfo>>& logs) {
    std::vector<std::string> names;
    for (const LogInfo& log : *logs) names.push_back(rendezvous::LogFileName(log.key));
    return names;
  }
  TempDir place_;
  LogStore logs_;
};

TEST_F(LogStoreTest, LatestAttemptsAreChosen) {
  Append({"worker", 0, 0}, "a\n");
  Append({"worker", 0, 1}, "b\n");
  Append({"worker", 1, 0}, "c\n");
  Append({"server", 0, 0}, "d\n");
  EXPECT_THAT(Names(logs_.Select({})),
              ElementsAre("server-0.0.log", "worker-0.1.log", "worker-1.0.log"));
  EXPECT_THAT(Names(logs_.Select(*ParseLogSelection("worker"))),
              ElementsAre("worker-0.1.log", "worker-1.0.log"));
  EXPECT_THAT(Names(logs_.Select({"worker", 0, 0})), ElementsAre("worker-0.0.log"));
  EXPECT_EQ(logs_.List()->size(), 4u);
}

TEST_F(LogStoreTest, WrongTaskIsToldWhatThereIs) {
  Append({"worker", 0, 0}, "a\n");
  const auto logs = logs_.Select(*ParseLogSelection("worker-7"));
  EXPECT_EQ(logs.status().code(), Code::kNotFound);
  EXPECT_THAT(logs.status().message(), HasSubstr("worker-7 has printed nothing"));
  EXPECT_THAT(logs.status().message(), HasSubstr("there are lines of worker-0 (attempt 1)"));
}

TEST_F(LogStoreTest, JobWithoutLogsHasNone) {
  const LogStore none(place_.path() / "nowhere");
  EXPECT_TRUE(none.Select({})->empty());
}

TEST_F(LogStoreTest, SelectionsAreParsed) {
  EXPECT_EQ(ParseLogSelection("worker-12")->index, 12);
  EXPECT_EQ(ParseLogSelection("worker/3")->role, "worker");
  EXPECT_EQ(ParseLogSelection("my-role")->role, "my-role");
  EXPECT_EQ(ParseLogSelection("my-role-1")->role, "my-role");
  EXPECT_FALSE(ParseLogSelection("my-role")->index);
  EXPECT_FALSE(ParseLogSelection("").ok());
}

TEST_F(LogStoreTest, TailFindsTheLastLines) {
  const LogKey key{"worker", 0, 0};
  Append(key, "one\ntwo\nthree\n");
  EXPECT_EQ(*logs_.TailOffset(key, 0), 14);
  EXPECT_EQ(*logs_.TailOffset(key, 1), 8);
  EXPECT_EQ(*logs_.TailOffset(key, 2), 4);
  EXPECT_EQ(*logs_.TailOffset(key, 3), 0);
  EXPECT_EQ(*logs_.TailOffset(key, 30), 0);
  Append(key, "half");
  EXPECT_EQ(*logs_.TailOffset(key, 1), 14);
  EXPECT_EQ(*logs_.TailOffset(key, 2), 8);
}

TEST_F(LogStoreTest, TailCrossesPieces) {
  const LogKey key{"worker", 0, 0};
  const std::string line(1000, 'x');
  std::string text;
  for (int i = 0; i < 1000; ++i) text += line + "\n";
  Append(key, text);
  EXPECT_EQ(*logs_.TailOffset(key, 700), 300 * 1001);
}

TEST_F(LogStoreTest, FollowingBringsEachByteOnceAndNewAttempts) {
  const LogKey first{"worker", 0, 0};
  const LogKey second{"worker", 0, 1};
  Append(first, "old\nnew\n");
  net::Loop loop;
  std::string got;
  auto follower = logs_.Follow(&loop, {"worker", 0, {}}, {{first, 4}},
                               [&](const LogKey& key, int64_t, std::string_view bytes) {
                                 got += std::to_string(key.attempt) + ":" + std::string(bytes);
                               });
  ASSERT_TRUE(follower.ok()) << follower.status().ToString();
  ASSERT_TRUE(loop.RunUntil([&] { return !got.empty(); }, kPatience));
  EXPECT_EQ(got, "0:new\n");
  Append(second, "again\n");
  Append({"server", 0, 0}, "not asked for\n");
  ASSERT_TRUE(loop.RunUntil([&] { return got.size() > 6; }, kPatience));
  EXPECT_EQ(got, "0:new\n1:again\n");
}

}  // namespace
}  // namespace shoal::controller
