// A run whose engine takes long (it pulls an image), or whose processes were stopped by the
// engine's owner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/files/cleanup_lock.h"
#include "controller/run/test_controller.h"
#include "controller/store/sqlite_connection.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;

class JobRunTest : public ControllerTest {
 protected:
  // The engine is starting the coordinator while the first client gives up.
  void BeginWithALongStart(std::function<void()> then) {
    on_connect_ = [this, then] {
      engine_.EmitEvent("coordinator", TaskPhase::kStarting);
      loop_.Post([this, then] {  // after the engine's word
        on_connect_ = [this] { Succeed(); };
        coordinator_.callbacks.on_closed(Unavailable("it does not listen yet"));
        loop_.Post(then);
      });
    };
    Begin(FourTasks());
  }
  void TellStopped(bool stopped) {
    engine::TaskEvent event{"", "coordinator", 0, 0, TaskPhase::kRunning, {}};
    event.stopped = stopped;
    event.end.reason = stopped ? "the queue has suspended the job" : "the job goes on";
    engine_.emit(event);
  }
};

TEST_F(JobRunTest, ACoordinatorThatIsBeingStartedIsWaitedFor) {
  BeginWithALongStart([this] { engine_.EmitEvent("coordinator", TaskPhase::kRunning); });
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kSucceeded) << ended_->reason;
}

TEST_F(JobRunTest, AJobIsStoppedBeforeItsCoordinatorWasStarted) {
  BeginWithALongStart([this] { run_->Drain("stopped by Ctrl-C"); });
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kCancelled);
  EXPECT_EQ(ended_->reason, "stopped by Ctrl-C");
  EXPECT_THAT(engine_.stopped, ElementsAre(id_));
}

TEST_F(JobRunTest, AJobThatIsHeldIsEndedThoughItsCoordinatorHearsNothing) {
  for (const bool held_first : {true, false}) {
    coordinator_.received.clear();
    on_connect_ = [this, held_first] {
      coordinator_.callbacks.on_connected();
      coordinator_.callbacks.on_event(StateOf(JobState::kRunning));
      if (held_first) TellStopped(true);
      loop_.Post([this, held_first] {
        run_->Drain("stopped by Ctrl-C");
        if (!held_first) TellStopped(true);
      });
    };
    job::Job job = FourTasks();
    job.limits.stop_grace = std::chrono::milliseconds(0);
    ended_.reset();
    Begin(job);
    ASSERT_TRUE(WaitForEnd()) << held_first;
    EXPECT_EQ(ended_->state, JobState::kCancelled);
    EXPECT_EQ(ended_->reason, "stopped by Ctrl-C");
  }
}

// `shoal stop` waits for it.
TEST_F(JobRunTest, ARecordedEndIsLockedUntilNothingIsLeft) {
  std::vector<bool> clearing;
  JobState recorded = JobState::kPending;
  engine_.on_stop = [&] {
    clearing.push_back(IsCleanupRunning(home_.job_dir(id_)));
    recorded = (*OpenSqliteStore(home_.database()))->GetJob(id_)->state;
  };
  on_connect_ = [&] {
    clearing.push_back(IsCleanupRunning(home_.job_dir(id_)));
    Succeed();
  };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  clearing.push_back(IsCleanupRunning(home_.job_dir(id_)));
  EXPECT_THAT(clearing, ElementsAre(false, true, false));
  EXPECT_EQ(recorded, JobState::kSucceeded);
  EXPECT_FALSE(std::filesystem::exists(home_.job_dir(id_) / "clearing"));
}

// It may be stopped by a signal before its first connection.
TEST_F(JobRunTest, ACoordinatorThatRunsAndDoesNotAnswerIsWaitedFor) {
  std::vector<bool> lives;
  on_connect_ = [&] {
    lives.push_back(coordinator_.lives());
    engine_.EmitEvent("coordinator", TaskPhase::kRunning);
    loop_.Post([&] {  // after the engine's word
      lives.push_back(coordinator_.lives());
      lives.push_back(coordinator_.lives());
      engine_.EmitEvent("coordinator", TaskPhase::kLost, {.reason = "its host is gone"});
      loop_.Post([&] {
        lives.push_back(coordinator_.lives());
        Succeed();
      });
    });
  };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_THAT(lives, ElementsAre(false, true, true, false));
  EXPECT_EQ(std::ranges::count_if(notes_,
                                  [](const std::string& note) {
                                    return note.find("does not answer") != std::string::npos;
                                  }),
            1);
}

// As with a temporary disk error: a trigger of another connection refuses all events.
TEST_F(JobRunTest, AnEndThatCannotBeStoredIsTriedAgain) {
  auto disk = SqliteConnection::Open(home_.database(), 1000);
  ASSERT_TRUE(disk.ok());
  on_connect_ = [&] {
    coordinator_.callbacks.on_event(StateOf(JobState::kRunning));
    ASSERT_TRUE(disk->Execute("CREATE TRIGGER no BEFORE INSERT ON events BEGIN "
                              "SELECT RAISE(ABORT, 'disk I/O error'); END")
                    .ok());
    loop_.After(std::chrono::milliseconds(300),
                [&] { EXPECT_TRUE(disk->Execute("DROP TRIGGER no").ok()); });
    coordinator_.callbacks.on_closed(Unavailable("the disk failed"));
  };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(store_->GetJob(id_)->state, JobState::kFailed);
  EXPECT_THAT(store_->GetJob(id_)->reason, testing::HasSubstr("the disk failed"));
  EXPECT_THAT(notes_, testing::Not(testing::Contains(testing::HasSubstr("could not be stored"))));
}

}  // namespace
}  // namespace shoal::controller
