#include "cli/terminal/thread_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <string>

namespace shoal::cli {
namespace {

using ::testing::HasSubstr;

std::string Described(const ThreadLimits& limits) {
  std::array<char, 256> text{};
  DescribeThreadLimit(limits, text);
  return text.data();
}

TEST(ThreadLimit, NamesTheOneThatWasReached) {
  ThreadLimits limits{.stack = 8 << 20, .user_limit = 96365};
  EXPECT_THAT(Described(limits),
              HasSubstr("96365 processes and threads; end some, or raise `ulimit -u`"));
  limits.group_limit = 100;
  limits.group_used = 99;
  EXPECT_THAT(Described(limits), HasSubstr("`ulimit -u`"));
  limits.group_used = 100;
  EXPECT_THAT(Described(limits), HasSubstr("the 100 processes and threads that pids.max allows"));
  // The kernel is not asked for a thread whose stack finds no room.
  limits.address_limit = 50'000 << 10;
  limits.address_used = 43'000 << 10;
  EXPECT_THAT(Described(limits), HasSubstr("`ulimit -v` allows, which is 50000 KiB"));
  limits.address_used = 30'000 << 10;
  EXPECT_THAT(Described(limits), HasSubstr("pids.max"));
  EXPECT_THAT(Described({}), HasSubstr("kernel.threads-max"));
  std::array<char, 8> small{};
  DescribeThreadLimit(limits, small);
  EXPECT_STREQ(small.data(), "its con");
}

TEST(ThreadLimit, ReadsThoseOfThisProcess) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  rlimit now = before;
  now.rlim_cur = uint64_t{1} << 45;  // more than any process has
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &now), 0);
  const ThreadLimits limits = ReadThreadLimits();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(limits.address_limit, uint64_t{1} << 45);
  EXPECT_GT(limits.address_used, 1u << 20);
  EXPECT_GT(limits.stack, 0u);
  EXPECT_TRUE(limits.group_limit == kNoLimit || limits.group_used > 0);
}

}  // namespace
}  // namespace shoal::cli
