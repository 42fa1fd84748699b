// Retention of records.
#include "controller/recovery/prune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "controller/store/sqlite_store.h"
#include "job/spec/json.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kHour = std::chrono::hours(1);

class PruneTest : public testing::Test {
 protected:
  PruneTest() : place_(std::move(*TempDir::Create())), home_(place_.path()) {
    store_ = std::move(*OpenSqliteStore(home_.database()));
  }
  // Stores a job that was submitted at hour 0 and, with `ended`, ended at that hour.
  void Make(const std::string& id, std::chrono::hours keep, int ended) {
    job::Job job;
    job.name = id;
    job.limits.keep_records = keep;
    ASSERT_TRUE(store_->Submit({id, id, "local", job::ToJson(job), {}, WallTime{}}).ok());
    ASSERT_TRUE(MakeDirectories(home_.job_dir(id) / "logs").ok());
    ASSERT_TRUE(WriteFileAtomically(home_.job_dir(id) / "logs/worker-0.0.log", "x").ok());
    if (ended < 0) return;
    const Event end = EndedEvent(WallTime{} + ended * kHour, JobState::kFailed, "", {});
    ASSERT_TRUE(store_->Append(id, {&end, 1}, Durability::kSynced).ok());
  }
  bool Exists(const std::string& id) const { return std::filesystem::exists(home_.job_dir(id)); }

  TempDir place_;
  StateHome home_;
  std::unique_ptr<Store> store_;
};

TEST_F(PruneTest, TakesWhatHasBeenKeptForAsLongAsItsFileSays) {
  Make("for-ever-1", kHour * 0, 1);
  Make("long-1", kHour * 100, 1);
  Make("short-1", kHour * 3, 2);
  Make("short-2", kHour * 3, 1);
  Make("going-1", kHour * 1, -1);
  EXPECT_THAT(*Prune(store_.get(), home_, WallTime{} + 4 * kHour - std::chrono::seconds(1)),
              IsEmpty());
  EXPECT_THAT(*Prune(store_.get(), home_, WallTime{} + 4 * kHour), ElementsAre("short-2"));
  EXPECT_THAT(*Prune(store_.get(), home_, WallTime{} + 50 * kHour), ElementsAre("short-1"));
  EXPECT_FALSE(Exists("short-1"));
  EXPECT_EQ(store_->GetJob("short-1").status().code(), Code::kNotFound);
  EXPECT_TRUE(store_->ReadEvents("short-1", 0, 10)->empty());
  for (const char* id : {"for-ever-1", "long-1", "going-1"}) {
    EXPECT_TRUE(Exists(id)) << id;
    EXPECT_TRUE(store_->GetJob(id).ok()) << id;
  }
}

TEST_F(PruneTest, TakesAllThatAreOldWhereAskedTo) {
  Make("a-1", kHour * 0, 1);
  Make("b-1", kHour * 1000, 2);
  Make("c-1", kHour * 0, 9);
  Make("going-1", kHour * 0, -1);
  EXPECT_THAT(*Prune(store_.get(), home_, WallTime{} + 10 * kHour, kHour * 8),
              ElementsAre("a-1", "b-1"));
  EXPECT_THAT(*Prune(store_.get(), home_, WallTime{} + 10 * kHour, Duration(0)),
              ElementsAre("c-1"));
  EXPECT_TRUE(Exists("going-1"));
}

TEST_F(PruneTest, GoesOnWhereAnotherDied) {
  Make("a-1", kHour * 1, 1);
  std::filesystem::remove_all(home_.job_dir("a-1"));
  EXPECT_THAT(*Prune(store_.get(), home_, WallTime{} + 10 * kHour), ElementsAre("a-1"));
}

}  // namespace
}  // namespace shoal::controller
