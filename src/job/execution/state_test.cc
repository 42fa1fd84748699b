#include "job/execution/state.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace shoal::job {
namespace {

constexpr JobState kAll[] = {JobState::kPending,   JobState::kAdmitted,  JobState::kStarting,
                             JobState::kRunning,   JobState::kSuspended, JobState::kFinishing,
                             JobState::kSucceeded, JobState::kFailed,    JobState::kCancelled};

TEST(JobState, NamesReadBack) {
  for (const JobState state : kAll) EXPECT_EQ(ParseJobState(NameOf(state)), state);
  for (const TaskState state : {TaskState::kCreated, TaskState::kJoined, TaskState::kRunning,
                                TaskState::kDraining, TaskState::kEnded}) {
    EXPECT_EQ(ParseTaskState(NameOf(state)), state);
  }
  EXPECT_EQ(ParseJobState("done"), std::nullopt);
}

TEST(JobState, FinalStatesAreFinalAndEveryOtherCanEnd) {
  for (const JobState from : kAll) {
    for (const JobState to : kAll) {
      if (IsFinal(from)) {
        EXPECT_FALSE(MayFollow(from, to));
      }
    }
    EXPECT_FALSE(MayFollow(from, from));
    if (!IsFinal(from)) {
      EXPECT_TRUE(MayFollow(from, JobState::kFailed));
      EXPECT_TRUE(MayFollow(from, JobState::kCancelled));
    }
    EXPECT_EQ(MayFollow(from, JobState::kSucceeded), from == JobState::kFinishing);
  }
  EXPECT_TRUE(MayFollow(JobState::kStarting, JobState::kPending));
  EXPECT_FALSE(MayFollow(JobState::kRunning, JobState::kPending));
  EXPECT_TRUE(MayFollow(JobState::kRunning, JobState::kSuspended));
  EXPECT_TRUE(MayFollow(JobState::kPending, JobState::kSuspended));
  EXPECT_TRUE(MayFollow(JobState::kSuspended, JobState::kPending));
  EXPECT_FALSE(MayFollow(JobState::kFinishing, JobState::kSuspended));
  EXPECT_FALSE(MayFollow(JobState::kSuspended, JobState::kRunning));
  EXPECT_FALSE(MayFollow(JobState::kPending, JobState::kRunning));
}

TEST(TaskState, AnAttemptGoesForwardOnly) {
  EXPECT_TRUE(MayFollow(TaskState::kCreated, TaskState::kJoined));
  EXPECT_TRUE(MayFollow(TaskState::kJoined, TaskState::kEnded));
  EXPECT_TRUE(MayFollow(TaskState::kEnded, TaskState::kJoined));
  EXPECT_FALSE(MayFollow(TaskState::kDraining, TaskState::kRunning));
  EXPECT_FALSE(MayFollow(TaskState::kCreated, TaskState::kRunning));
}

TEST(TaskEnd, IsToldForPeople) {
  EXPECT_EQ(Describe(Exited(3)), "exited with 3");
  EXPECT_EQ(Describe(Exited(137)), "exited with 137, which a shell reports for signal 9 (SIGKILL)");
  EXPECT_EQ(Describe(Signaled(11)), "was killed by signal 11 (SIGSEGV)");
  EXPECT_EQ(Describe(OutOfMemory("exceeded its 512 MiB")), "exceeded its 512 MiB");
  EXPECT_EQ(Describe(Lost("no heartbeat for 30 s")), "was lost: no heartbeat for 30 s");
}

TEST(TaskEnd, JsonRoundTrip) {
  EXPECT_TRUE(rc::check([] {
    TaskEnd end;
    end.kind = *rc::gen::element(EndKind::kExit, EndKind::kSignal, EndKind::kOutOfMemory,
                                 EndKind::kLost, EndKind::kCancelled);
    end.exit_code = *rc::gen::inRange(0, 256);
    end.signal = *rc::gen::inRange(0, 65);
    end.detail = *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
    const auto object = ParseJsonObject(ToText(ToJson(end)));
    RC_ASSERT(object.ok());
    RC_ASSERT(*TaskEndFromJson(*object) == end);
  }));
  EXPECT_FALSE(
      TaskEndFromJson({{"kind", "exit"}, {"exit_code", 300}, {"signal", 0}, {"detail", ""}}).ok());
  EXPECT_FALSE(
      TaskEndFromJson({{"kind", "x"}, {"exit_code", 3}, {"signal", 0}, {"detail", ""}}).ok());
  EXPECT_FALSE(TaskEndFromJson({{"kind", "exit"}}).ok());
}

}  // namespace
}  // namespace shoal::job
