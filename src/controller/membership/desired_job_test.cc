#include "controller/membership/desired_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

namespace shoal::controller {
namespace {

using testing::Field;
using testing::SizeIs;

job::Job JobWithOutput(const std::string& directory) {
  job::Job job;
  job.name = "saves";
  job::Role worker;
  worker.name = "worker";
  worker.command = {"true"};
  job.roles = {worker};
  job.outputs = {{"model", directory}};
  return job;
}

std::vector<engine::Mount> MountsOf(const job::Job& job) {
  const auto desired = MakeDesiredJob(job, "saves-1", {"/state/saves-1", "", "/bin/shoal"}, {});
  EXPECT_TRUE(desired.ok()) << desired.status().message();
  return desired.ok() ? desired->container.mounts : std::vector<engine::Mount>();
}

TEST(DesiredMounts, AnOutputsDeepestExistingParentIsMounted) {
  const TempDir dir = std::move(*TempDir::Create());
  const auto mounts = MountsOf(JobWithOutput(dir.path() / "none" / "out"));
  ASSERT_THAT(mounts, SizeIs(1));
  EXPECT_EQ(mounts[0].source, dir.path().string());
  EXPECT_EQ(mounts[0].target, dir.path().string());
  EXPECT_FALSE(mounts[0].read_only);
  EXPECT_FALSE(mounts[0].make_source);
}

// "/" cannot be mounted: without a mount the output would go to the container's own filesystem and
// be lost.
TEST(DesiredMounts, AMissingTopLevelDirectoryOfAnOutputIsMade) {
  for (const char* output : {"/shoal_no_such_directory/out", "/shoal_no_such_directory/a/b/"}) {
    const auto mounts = MountsOf(JobWithOutput(output));
    ASSERT_THAT(mounts, SizeIs(1)) << output;
    EXPECT_EQ(mounts[0].source, "/shoal_no_such_directory");
    EXPECT_EQ(mounts[0].target, "/shoal_no_such_directory");
    EXPECT_TRUE(mounts[0].make_source);
  }
}

TEST(DesiredMounts, AnOutputDirectlyBelowTheRootIsMountedItself) {
  const auto mounts = MountsOf(JobWithOutput("/shoal_no_such_directory"));
  ASSERT_THAT(mounts, SizeIs(1));
  EXPECT_EQ(mounts[0].source, "/shoal_no_such_directory");
  EXPECT_TRUE(mounts[0].make_source);
}

// A program that opens it for writing follows the link inside the container.
TEST(DesiredMounts, WhereAnOutputLeadsIsMountedToo) {
  const TempDir dir = std::move(*TempDir::Create());
  const TempDir other = std::move(*TempDir::Create());
  std::filesystem::create_symlink("second", dir.path() / "out");
  std::filesystem::create_symlink(other.path() / "none" / "model.bin", dir.path() / "second");
  const auto mounts = MountsOf(JobWithOutput(dir.path() / "out"));
  ASSERT_THAT(mounts, SizeIs(2));
  EXPECT_EQ(mounts[0].source, dir.path().string());
  EXPECT_EQ(mounts[1].source, other.path().string());
  EXPECT_EQ(mounts[1].target, other.path().string());
  EXPECT_FALSE(mounts[1].read_only);
}

TEST(DesiredMounts, AnOutputInAVolumeNeedsNoOther) {
  job::Job job = JobWithOutput("/shoal_no_such_directory/out");
  job.container.volumes = {"/tmp:/shoal_no_such_directory"};
  EXPECT_THAT(MountsOf(job),
              testing::ElementsAre(Field(&engine::Mount::source, std::string("/tmp"))));
}

}  // namespace
}  // namespace shoal::controller
