// How a job of ours is found again in Slurm's queue by a command that did not submit it.
#include <gtest/gtest.h>

#include "engine/slurm/batch_script.h"
#include "engine/slurm/slurm_commands.h"

namespace shoal::engine::slurm {
namespace {

int64_t NumberOf(const QueuedJob* job) { return job == nullptr ? 0 : job->number; }

constexpr const char* kQueue =
    "6|COMPLETED|None|N/A|n1|n1|/home/a/jobs/x-1|shoal:x-1\n"
    "7|RUNNING|None|N/A|n1|n1|/home/a/jobs/x-1|shoal:x-1\n"
    "8|RUNNING|None|N/A|n1|n1|/home/a/jobs/y-1|project 7\n"
    "9|PENDING|None|N/A|n1|n1|/home/a|b/jobs/z-1|shoal:z-1\n";

TEST(FindJob, ByItsComment) {
  const auto queue = ParseQueue(kQueue);
  EXPECT_EQ(NumberOf(FindJob(queue, "x-1", 0)), 7);
  EXPECT_EQ(NumberOf(FindJob(queue, "x-1", 5)), 7);  // a number of an earlier allocation
  EXPECT_EQ(NumberOf(FindJob(queue, "none-1", 0)), 0);
}

// `slurm.options: [--comment=project 7]`, SBATCH_COMMENT, or a plugin of the site.
TEST(FindJob, ByTheStoredNumberWhereTheCommentIsNotOurs) {
  const auto queue = ParseQueue(kQueue);
  EXPECT_EQ(NumberOf(FindJob(queue, "y-1", 8)), 8);
  EXPECT_EQ(NumberOf(FindJob(queue, "y-1", 0)), 0);
}

TEST(FindJob, NotAnotherJobOfOursUnderTheSameNumber) {
  EXPECT_EQ(NumberOf(FindJob(ParseQueue(kQueue), "y-1", 7)), 0);
}

TEST(FindJob, NotOneThatHasEnded) {
  EXPECT_EQ(NumberOf(FindJob(ParseQueue("7|FAILED|None|N/A|n1|n1|/|c\n"), "x-1", 7)), 0);
}

TEST(ParseQueue, ADirectoryMayHoldTheFieldsMark) {
  const auto queue = ParseQueue(kQueue);
  const QueuedJob* const found = FindJob(queue, "z-1", 0);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->work_dir, "/home/a|b/jobs/z-1");
  EXPECT_EQ(JobIdOfComment(found->comment), "z-1");
}

}  // namespace
}  // namespace shoal::engine::slurm
