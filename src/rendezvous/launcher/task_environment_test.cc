#include "rendezvous/launcher/task_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shoal::rendezvous {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::StartsWith;

const AttemptPaths kPaths{"/job", "/scratch", "/cluster", "", "/out"};
constexpr const char* kNothing[] = {nullptr};

TEST(TaskEnvironment, TemporaryDirectoryIsADefault) {
  EXPECT_THAT(TaskEnvironment(kPaths).AddDefaults().Build(), ElementsAre("TMPDIR=/scratch"));
  EXPECT_THAT(TaskEnvironment(kPaths).AddDefaults().AddVariables({{"TMPDIR", "/fast"}}).Build(),
              ElementsAre("TMPDIR=/fast"));
}

TEST(TaskEnvironment, VariablesOfTheEnginesObjectsAreNotInherited) {
  const char* const own[] = {"JOB_COMPLETION_INDEX=3",   "SHOAL_FAULTS=x=EIO@1",
                             "SHOAL_SIGNALS_ALL=1",      "no-equals",
                             "JOB_COMPLETION_INDEXED=4", nullptr};
  EXPECT_THAT(TaskEnvironment(kPaths).Inherit(own).Build(),
              ElementsAre("JOB_COMPLETION_INDEXED=4"));
  EXPECT_THAT(
      TaskEnvironment(kPaths).Inherit(own).AddVariables({{"JOB_COMPLETION_INDEX", "1"}}).Build(),
      Contains("JOB_COMPLETION_INDEX=1"));
}

TEST(TaskEnvironment, LaterLayersReplaceEarlierOnes) {
  const char* const own[] = {"A=engine", "B=engine", "C=engine", nullptr};
  const auto built = TaskEnvironment(kPaths)
                         .Inherit(own)
                         .AddVariables({{"A", "job"}, {"B", "job"}})
                         .AddVariables({{"A", "rank"}})
                         .Build();
  EXPECT_THAT(built, ElementsAre("A=rank", "B=job", "C=engine"));
}

TEST(TaskEnvironment, TheOutputMarkBecomesTheDirectory) {
  std::string value(kOutputMark);
  value.append("/m:").append(kOutputMark);
  EXPECT_THAT(TaskEnvironment(kPaths).AddVariables({{"M", value}}).Build(),
              ElementsAre("M=/out/m:/out"));
}

TEST(TaskEnvironment, AttemptVariablesAreTheLaunchers) {
  const auto built = TaskEnvironment(kPaths)
                         .Inherit(kNothing)
                         .AddVariables({{"SHOAL_JOB_DIR", "/elsewhere"}})
                         .AddAttempt()
                         .Build();
  EXPECT_THAT(built, Contains("SHOAL_JOB_DIR=/job"));
  EXPECT_THAT(built, Contains("SHOAL_OUTPUT=/out"));
  EXPECT_THAT(built, Contains("HOME=/scratch"));
}

TEST(TaskEnvironment, ATrainerWithoutOutputsWritesNone) {
  const auto built =
      TaskEnvironment(kPaths).AddVariables({{"SHOAL_LEARN", "{}"}}).AddAttempt().Build();
  EXPECT_THAT(built, Not(Contains(StartsWith("SHOAL_OUTPUT="))));
}

}  // namespace
}  // namespace shoal::rendezvous
