// Jobs that wait for others, on one supervisor.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/supervisor/test_supervisor.h"

namespace shoal::controller {
namespace {

using testing::HasSubstr;

job::Job After(job::Job job, const std::vector<job::Dependency>& after) {
  job.triggers.after = after;
  return job;
}

TEST_F(SupervisorTest, AJobWaitsForTheOnesThatItNames) {
  const std::string first = Submit("long");
  ASSERT_TRUE(told_.AwaitState(first, "running"));
  const auto second = supervisor_->Submit(After(Named("second"), {{"long"}}), {.engine = "gate"});
  ASSERT_TRUE(second.ok()) << second.status().message();
  const auto third = supervisor_->Submit(
      After(Named("third"), {{*second}, {first, job::DependencyWhen::kEnded}}), {.engine = "gate"});
  ASSERT_TRUE(third.ok()) << third.status().message();
  ASSERT_TRUE(told_.AwaitState(*second, "pending"));
  ASSERT_TRUE(told_.AwaitState(*third, "pending"));
  std::promise<WhyWaits> why;
  supervisor_->Why(*second, [&](const WhyWaits& answer) { why.set_value(answer); });
  EXPECT_THAT(why.get_future().get().reason, HasSubstr("waits for " + first + ", which is "));
  EXPECT_EQ(store_->GetJob(*third)->state, JobState::kPending);
  EXPECT_THAT(store_->GetJob(*third)->reason, HasSubstr("and for 1 other job"));

  // The first one is cancelled: the second can never start, and so neither can the third.
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Kill(first, "enough", done); }).ok());
  const auto end = told_.AwaitEnd(*second);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->state, JobState::kCancelled);
  EXPECT_EQ(end->reason,
            "it was to start after " + first + " succeeded, which has been cancelled: enough");
  const auto last = told_.AwaitEnd(*third);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->state, JobState::kCancelled);
  EXPECT_THAT(last->reason, testing::StartsWith("it was to start after " + *second));
  EXPECT_EQ(store_->GetJob(*second)->started, WallTime());
}

TEST_F(SupervisorTest, AConditionCanBeTheFailureOrAnyEnd) {
  const std::string first = Submit("long");
  ASSERT_TRUE(told_.AwaitState(first, "running"));
  const auto on_failure = supervisor_->Submit(
      After(Named("on-failure"), {{first, job::DependencyWhen::kFailed}}), {.engine = "gate"});
  const auto always = supervisor_->Submit(
      After(Named("always"), {{first, job::DependencyWhen::kEnded}}), {.engine = "gate"});
  ASSERT_TRUE(on_failure.ok() && always.ok());
  ASSERT_TRUE(told_.AwaitState(*always, "pending"));
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Kill(first, "enough", done); }).ok());
  ASSERT_TRUE(told_.AwaitEnd(*always));
  EXPECT_EQ(store_->GetJob(*always)->state, JobState::kSucceeded);
  ASSERT_TRUE(told_.AwaitEnd(*on_failure));
  EXPECT_THAT(store_->GetJob(*on_failure)->reason, HasSubstr("been cancelled"));
  // What is over already decides at once.
  const auto late = supervisor_->Submit(After(Named("late"), {{*always}}), {.engine = "gate"});
  ASSERT_TRUE(late.ok());
  ASSERT_TRUE(told_.AwaitEnd(*late));
  EXPECT_EQ(store_->GetJob(*late)->state, JobState::kSucceeded);
  const auto never = supervisor_->Submit(After(Named("never"), {{first}}), {.engine = "gate"});
  EXPECT_EQ(never.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(never.status().message(), HasSubstr("the job would never start"));
}

TEST_F(SupervisorTest, AnUnknownJobOrOneOfAnotherTeamIsRefused) {
  const auto own = supervisor_->Submit(Named("long"), {.engine = "gate", .team = "red"});
  ASSERT_TRUE(own.ok());
  for (const std::string& name : {std::string("none"), *own, std::string("long")}) {
    const auto other =
        supervisor_->Submit(After(Named("other"), {{name}}), {.engine = "gate", .team = "blue"});
    EXPECT_EQ(
        other.status().message(),
        "after: got " + name +
            ", expected the ID or the name of a job of the team blue; `shoal jobs` lists them");
  }
  EXPECT_TRUE(
      supervisor_->Submit(After(Named("same"), {{"long"}}), {.engine = "gate", .team = "red"})
          .ok());
}

TEST_F(SupervisorTest, WaitingForAJobIsTakenOver) {
  const std::string first = Submit("long");
  ASSERT_TRUE(told_.AwaitState(first, "running"));
  const auto second = supervisor_->Submit(
      After(Named("second"), {{first, job::DependencyWhen::kEnded}}), {.engine = "gate"});
  ASSERT_TRUE(second.ok());
  const auto third = supervisor_->Submit(After(Named("third"), {{first}}), {.engine = "gate"});
  ASSERT_TRUE(third.ok());
  ASSERT_TRUE(told_.AwaitState(*third, "pending"));
  Restart();
  ASSERT_TRUE(supervisor_->AttachAll().ok());
  // The commands of waiting jobs go on to work.
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Suspend(*third, "later", done); }).ok());
  ASSERT_TRUE(told_.AwaitEnd(*third));
  EXPECT_EQ(store_->GetJob(*third)->state, JobState::kSuspended);
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Scale(*second, "worker", 2, "", done); }).ok());
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Kill(first, "enough", done); }).ok());
  ASSERT_TRUE(told_.AwaitEnd(*second));
  EXPECT_EQ(store_->GetJob(*second)->state, JobState::kSucceeded);
  // A resumed one waits again, and finds what has happened in the meantime.
  {
    const std::lock_guard lock(told_.mu);
    told_.ends.erase(*third);
  }
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Resume(*third, done); }).ok());
  ASSERT_TRUE(told_.AwaitEnd(*third));
  EXPECT_EQ(store_->GetJob(*third)->state, JobState::kCancelled);
}

// A takeover while no server ran and the other job ended.
TEST_F(SupervisorTest, AnEndWithoutAServerIsSeenByTheNext) {
  const std::string first = SubmitSized("long", 800);
  ASSERT_TRUE(told_.AwaitState(first, "running"));
  const std::string waits = SubmitSized("wait", 600);
  const auto second = supervisor_->Submit(After(Named("second"), {{waits}}), {.engine = "gate"});
  ASSERT_TRUE(second.ok());
  ASSERT_TRUE(told_.AwaitState(*second, "pending"));
  observation_.reset();
  supervisor_.reset();
  ControllerOptions options;
  options.store = store_.get();
  options.home = home_;
  ASSERT_TRUE(Controller(options).EndWaiting(waits, "stopped").ok());
  StartSupervisor();
  ASSERT_TRUE(supervisor_->AttachAll().ok());
  ASSERT_TRUE(told_.AwaitEnd(*second));
  EXPECT_THAT(store_->GetJob(*second)->reason, HasSubstr("been cancelled: stopped"));
}

}  // namespace
}  // namespace shoal::controller
