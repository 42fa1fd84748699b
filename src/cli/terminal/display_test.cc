#include "cli/terminal/display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

std::string EndOf(int workers, double exchange_share) {
  controller::JobRecord record;
  record.id = "fm-1";
  record.state = job::JobState::kSucceeded;
  record.result = {{"examples_per_second", 2e6}, {"exchange_share", exchange_share}};
  job::Job job;
  job.roles.emplace_back();
  job.roles.back().name = "worker";
  job.roles.back().replicas = workers;
  return EndSentence(record, job, "", false);
}

TEST(EndSentence, SaysWhenFewerWorkersWouldDo) {
  EXPECT_THAT(
      EndOf(16, 0.79),
      EndsWith("; its 16 workers exchanged or waited in 79 % of their time: 4 workers, with "
               "more threads (--threads) where there are processors, are likely faster"));
  EXPECT_THAT(EndOf(2, 0.8), HasSubstr(": 1 worker, with more threads"));
  for (const auto& [workers, share] : {std::pair{16, 0.4}, {1, 0.9}, {4, 0.5}})
    EXPECT_THAT(EndOf(workers, share), Not(HasSubstr("exchanged"))) << workers;
}

}  // namespace
}  // namespace shoal::cli
