#include "api/sql/sql_events.h"

#include <gtest/gtest.h>

#include <string>

namespace shoal::api {
namespace {

TEST(SqlEventsTest, AreReadFromAPosition) {
  SqlEventLog log;
  for (int i = 0; i < 5; ++i) log.Add({{"event", "note"}, {"n", i}});
  SqlEvents read = log.Read(0, 2);
  ASSERT_EQ(read.items.size(), 2U);
  EXPECT_EQ(GetIntOr(read.items[1], "seq", 0), 2);
  EXPECT_EQ(read.next, 2);
  EXPECT_FALSE(read.lost);
  read = log.Read(read.next, 100);
  EXPECT_EQ(read.items.size(), 3U);
  EXPECT_FALSE(log.HasAfter(read.next));
  EXPECT_TRUE(log.Read(INT64_MAX, 100).items.empty());
  EXPECT_EQ(log.Read(INT64_MAX, 0).next, 5);
}

TEST(SqlEventsTest, OldOnesMakeRoom) {
  SqlEventLog log;
  for (int i = 0; i < 20; ++i)
    log.Add({{"event", "rows"}, {"text", std::string(size_t{1} << 20, 'x')}});
  const SqlEvents read = log.Read(0, 100);
  EXPECT_TRUE(read.lost);
  EXPECT_LE(read.items.size(), 16U);
  EXPECT_EQ(read.next, 20);
  // One that is larger than all the room is there until the next.
  log.Add({{"text", std::string(SqlEventLog::kMaxBytes, 'x')}});
  EXPECT_EQ(log.Read(0, 100).items.size(), 1U);
  log.Add({{"event", "finished"}});
  const SqlEvents last = log.Read(20, 100);
  ASSERT_EQ(last.items.size(), 1U);
  EXPECT_TRUE(last.lost);
  SqlEventLog many;
  for (size_t i = 0; i < SqlEventLog::kMaxEvents + 5; ++i) many.Add({});
  EXPECT_EQ(many.Read(0, 1).next, 6);
}

}  // namespace
}  // namespace shoal::api
