// Lines that the coordinator did not send are read from the log files, each byte once.

#include "controller/files/log_delivery.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "rendezvous/logs/log_segment.h"

namespace shoal::controller {
namespace {

class ShownLogsTest : public testing::Test {
 protected:
  ShownLogsTest() : place_(std::move(*TempDir::Create())) {
    EXPECT_TRUE(MakeDirectories(place_.path() / "logs").ok());
  }
  void Append(const LogKey& key, std::string_view text) {
    auto writer = rendezvous::LogWriter::Open(place_.path() / "logs", key);
    ASSERT_TRUE(writer.ok()) << writer.status().ToString();
    ASSERT_TRUE(writer->Append(writer->size(), text).ok());
  }
  LogDelivery Make() {
    return {LogStore(place_.path()), [this](const LogKey& key, int64_t offset, std::string_view b) {
              EXPECT_EQ(offset, static_cast<int64_t>(shown_[key].size() + earlier_[key]));
              shown_[key] += b;
            }};
  }
  TempDir place_;
  std::map<LogKey, std::string> shown_;
  std::map<LogKey, int64_t> earlier_;
};

TEST_F(ShownLogsTest, TheRestIsReadWhereTheCoordinatorStopped) {
  const LogKey half{"worker", 0, 0};
  const LogKey none{"worker", 1, 0};
  const LogKey all{"worker", 2, 0};
  LogDelivery logs = Make();
  ASSERT_TRUE(logs.Begin().ok());
  std::string text("one\n");
  text.append(600'000, 'x').append("\nlast line without an end");
  Append(half, text);
  Append(none, "two\n");
  Append(all, "three\n");
  logs.Deliver(half, 0, "one\n");
  logs.Deliver(all, 0, "three\n");
  ASSERT_TRUE(logs.DeliverRest().ok());
  EXPECT_EQ(shown_[half], text);
  EXPECT_EQ(shown_[none], "two\n");
  EXPECT_EQ(shown_[all], "three\n");
  ASSERT_TRUE(logs.DeliverRest().ok());  // once
  EXPECT_EQ(shown_[none], "two\n");
}

TEST_F(ShownLogsTest, LinesOfAnEarlierRunAreNotShownAgain) {
  const LogKey first{"worker", 0, 0};
  const LogKey second{"worker", 0, 1};
  Append(first, "before it was suspended\n");
  LogDelivery logs = Make();
  ASSERT_TRUE(logs.Begin().ok());
  Append(second, "after\n");
  ASSERT_TRUE(logs.DeliverRest().ok());
  EXPECT_EQ(shown_.count(first), 0u);
  EXPECT_EQ(shown_[second], "after\n");
}

TEST_F(ShownLogsTest, WithoutTheRestNoFileIsRead) {
  LogDelivery logs(
      LogStore(place_.path()),
      [this](const LogKey& key, int64_t, std::string_view bytes) { shown_[key] += bytes; },
      /*rest=*/false);
  ASSERT_TRUE(logs.Begin().ok());
  Append({"worker", 0, 0}, "not sent\n");
  logs.Deliver({"worker", 1, 0}, 0, "sent\n");
  ASSERT_TRUE(logs.DeliverRest().ok());
  EXPECT_EQ(shown_.size(), 1u);
  EXPECT_EQ((shown_[{"worker", 1, 0}]), "sent\n");
}

TEST_F(ShownLogsTest, AJobThatNeverBeganShowsNothing) {
  Append({"worker", 0, 0}, "of the run that was suspended\n");
  LogDelivery logs = Make();
  ASSERT_TRUE(logs.DeliverRest().ok());
  EXPECT_TRUE(shown_.empty());
}

}  // namespace
}  // namespace shoal::controller
