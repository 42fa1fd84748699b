#include "rendezvous/launcher/launch_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "framework/framework_environment.h"

namespace shoal::rendezvous {
namespace {

using testing::Contains;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> Launched(const framework::Environment& job) {
  StartMessage start;
  start.env.assign(job.begin(), job.end());
  return LaunchEnvironment(start, {}, {"/job", "/scratch", "/cluster", "", ""});
}

TEST(LaunchEnvironment, DirectoryForTemporaryFilesIsTheJobsIfItHasOne) {
  EXPECT_THAT(Launched({}), Contains("TMPDIR=/scratch"));
  EXPECT_THAT(Launched({{"TMPDIR", "/fast"}}), Contains("TMPDIR=/fast"));
}

TEST(LaunchEnvironment, IndexOfAnEnginesOwnJobsIsNotThePrograms) {
  ::setenv("JOB_COMPLETION_INDEX", "3", 1);
  const auto without = Launched({});
  const auto with = Launched({{"JOB_COMPLETION_INDEX", "1"}});
  ::unsetenv("JOB_COMPLETION_INDEX");
  EXPECT_THAT(without, Not(Contains(StartsWith("JOB_COMPLETION_INDEX="))));
  EXPECT_THAT(with, Contains("JOB_COMPLETION_INDEX=1"));
}

}  // namespace
}  // namespace shoal::rendezvous
