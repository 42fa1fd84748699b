#include <gtest/gtest.h>

#include "base/file.h"
#include "engine/tasks/job_files.h"

namespace shoal::engine {
namespace {

class JobLockTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(dir_.ok());
    ASSERT_TRUE(MakeDirectories(EngineDir(path()), 0700).ok());
  }
  std::string path() const { return dir_->path().string(); }

  Result<TempDir> dir_ = TempDir::Create();
};

TEST_F(JobLockTest, OneHoldsIt) {
  const JobLock first = JobLock::Take(path()).value();
  EXPECT_TRUE(first.held());
  EXPECT_FALSE(JobLock::Take(path())->held());
  EXPECT_FALSE(JobLock().held());
}

TEST_F(JobLockTest, ABrokenOneIsNotHeldAnyMore) {
  const JobLock first = JobLock::Take(path()).value();
  ASSERT_TRUE(BreakJobLock(path()).ok());
  EXPECT_FALSE(first.held());
  const JobLock second = JobLock::Take(path()).value();
  EXPECT_TRUE(second.held());
  EXPECT_FALSE(first.held()) << "the file is another one";
  first.Remove();
  EXPECT_TRUE(second.held()) << "the first one removed the second one's file";
  second.Remove();
  EXPECT_FALSE(second.held());
  EXPECT_TRUE(BreakJobLock(path()).ok()) << "there is nothing to break";
}

}  // namespace
}  // namespace shoal::engine
