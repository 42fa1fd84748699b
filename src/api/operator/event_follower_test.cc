// Stored events of jobs, as they are committed.
#include "api/operator/event_follower.h"

#include <gtest/gtest.h>

#include <set>

#include "controller/store/sql/test_temp_store.h"

namespace shoal::api {
namespace {

using controller::Durability;
using controller::Event;
using controller::JobState;

class EventFollowerTest : public controller::TempStoreTest {
 protected:
  void SubmitJob(const std::string& id) {
    controller::NewJob job;
    job.id = id;
    job.name = "test";
    job.engine = "local";
    job.job = {{"name", "test"}};
    ASSERT_TRUE(store_->Submit(job).ok());
  }
  // Waits until the follower has told of this state of the job, as the store has it then.
  bool AwaitState(const std::string& id, JobState state) {
    MutexLock lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&]() REQUIRES(mu_) {
      return seen_.contains({id, state});
    });
  }
  std::unique_ptr<EventFollower> Follow() {
    auto follower = EventFollower::Start(store_.get(), [this](const std::string& id) {
      const auto record = store_->GetJob(id);
      const MutexLock lock(mu_);
      if (record.ok()) seen_.insert({id, record->state});
      changed_.notify_all();
    });
    EXPECT_TRUE(follower.ok());
    return follower.ok() ? std::move(*follower) : nullptr;
  }

  Mutex mu_;
  CondVar changed_;
  std::set<std::pair<std::string, JobState>> seen_ GUARDED_BY(mu_);
};

TEST_F(EventFollowerTest, TellsOfAJobWhenItsEventsCanBeRead) {
  SubmitJob("before-000001");
  const auto follower = Follow();
  ASSERT_NE(follower, nullptr);
  SubmitJob("a-000001");
  EXPECT_TRUE(AwaitState("a-000001", JobState::kPending));
  for (const JobState state : {JobState::kAdmitted, JobState::kStarting, JobState::kRunning}) {
    const Event event = controller::StateEvent(RealClock::Get()->Wall(), state, "");
    ASSERT_TRUE(store_->Append("a-000001", {&event, 1}, Durability::kWritten).ok());
    EXPECT_TRUE(AwaitState("a-000001", state)) << job::NameOf(state);
  }
  const MutexLock lock(mu_);
  EXPECT_FALSE(seen_.contains({"before-000001", JobState::kPending}));
}

TEST_F(EventFollowerTest, EndsWhileEventsCome) {
  auto follower = Follow();
  for (int i = 0; i < 20; ++i) SubmitJob("b-00000" + std::to_string(i));
  follower.reset();
  SubmitJob("last-000001");
  const MutexLock lock(mu_);
  EXPECT_FALSE(seen_.contains({"last-000001", JobState::kPending}));
}

}  // namespace
}  // namespace shoal::api
