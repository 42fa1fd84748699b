#include "ps/checkpoint/checkpoint_id_allocator.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "ps/checkpoint/checkpoint_dir.h"
#include "ps/testing/test_cluster.h"

namespace shoal::ps {
namespace {

void Commit(const std::filesystem::path& root, int64_t id) {
  const auto directory = CheckpointPath(root, id);
  ASSERT_OK(MakeDirectories(directory, 0700));
  const Manifest manifest{id, {{CheckpointFileName(0), 0, 0}}, {}};
  ASSERT_OK(WriteFileAtomically(directory / "manifest.json", EncodeManifest(manifest), 0600));
}

TEST(CheckpointIdAllocator, AreAboveAllThatAreThere) {
  const auto dir = TempDir::Create().value();
  CheckpointIdAllocator numbers(dir.path());
  ASSERT_OK(numbers.Guard());
  EXPECT_EQ(numbers.NextId(-1).value(), 0);
  EXPECT_EQ(numbers.NextId(-1).value(), 1);  // the first was given up
  Commit(dir.path(), 1);
  EXPECT_EQ(numbers.NextId(-1).value(), 2);
  EXPECT_EQ(numbers.NextId(7).value(), 8);
  ASSERT_OK(MakeDirectories(CheckpointPath(dir.path(), 20), 0700));  // half-written
  EXPECT_EQ(numbers.NextId(7).value(), 21);
  // No name of ours, or no number that could be counted on from.
  for (const char* name : {"checkpoint-9223372036854775807", "checkpoint-x", "checkpoint-"})
    ASSERT_OK(MakeDirectories(dir.path() / name, 0700));
  EXPECT_EQ(numbers.NextId(7).value(), 22);
}

// Each would restore and continue the rows of the other.
TEST(CheckpointIdAllocator, TwoJobsDoNotShareADirectory) {
  const auto dir = TempDir::Create().value();
  CheckpointIdAllocator first(dir.path()), second(dir.path());
  ASSERT_OK(first.Guard());
  ASSERT_OK(second.Guard());
  Commit(dir.path(), first.NextId(-1).value());
  const Status refused = second.NextId(-1).status();
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_NE(refused.message().find("checkpoint-0 was committed by another job"), std::string::npos)
      << refused.message();
  Commit(dir.path(), first.NextId(-1).value());
  // A server that is started again begins with what is there; its predecessor is over.
  CheckpointIdAllocator again(dir.path());
  ASSERT_OK(again.Guard());
  Commit(dir.path(), again.NextId(1).value());
  EXPECT_FALSE(first.NextId(-1).ok());
  EXPECT_EQ(again.NextId(1).value(), 3);
}

TEST(CheckpointIdAllocator, WithCopiesAnotherServerMayHaveCommitted) {
  const auto dir = TempDir::Create().value();
  CheckpointIdAllocator numbers(dir.path());
  Commit(dir.path(), 4);
  EXPECT_EQ(numbers.NextId(-1).value(), 5);
}

}  // namespace
}  // namespace shoal::ps
