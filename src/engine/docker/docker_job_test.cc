// The states of a job's containers without any daemon: what is asked for when, and what is told.
#include "engine/docker/docker_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal::engine::docker {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = Action::Kind;

const TaskKey kWorker{"worker", 0};

class DockerJobTest : public testing::Test {
 protected:
  DesiredTask Task(int index = 0) {
    DesiredTask task;
    task.role = "worker";
    task.index = index;
    task.argv = {"x"};
    task.resources.memory_bytes = int64_t{48} << 20;
    return task;
  }
  void Apply(std::vector<DesiredTask> tasks) {
    DesiredJob desired;
    desired.job_id = "job";
    desired.tasks = std::move(tasks);
    job_.Apply(desired, now_);
  }
  std::vector<Action> Step() {
    std::vector<Action> actions;
    due_ = job_.Step(now_, &actions, &events_);
    return actions;
  }
  // The one action that is due.
  Action One(Kind kind) {
    const std::vector<Action> actions = Step();
    EXPECT_EQ(actions.size(), 1u);
    if (actions.empty()) return {};
    EXPECT_EQ(actions[0].kind, kind);
    return actions[0];
  }
  void ApplyOutcome(const Action& action, Status status, const std::string& container = "c0") {
    Outcome outcome;
    outcome.action = action;
    outcome.status = std::move(status);
    if (action.kind == Kind::kStart && outcome.status.ok()) outcome.container = container;
    job_.ApplyOutcome(outcome, now_, &events_);
  }
  void Ended(int exit_code, bool out_of_memory = false) {
    job_.OnContainerEnd(kWorker, Incarnation());
    Outcome outcome;
    outcome.action = One(Kind::kInspect);
    ContainerState state;
    state.exit_code = exit_code;
    state.out_of_memory = out_of_memory;
    outcome.state = state;
    outcome.log_tail = "one\nlast\n";
    job_.ApplyOutcome(outcome, now_, &events_);
  }
  int Incarnation() { return job_.List().at(0).incarnation; }
  std::vector<TaskPhase> Phases() {
    std::vector<TaskPhase> phases;
    for (const TaskEvent& event : events_) phases.push_back(event.phase);
    return phases;
  }
  void Start() { ApplyOutcome(One(Kind::kStart), Status::Ok()); }

  TimePoint now_{std::chrono::hours(1)};
  DockerJob job_{"job", true, {}};
  std::vector<TaskEvent> events_;
  std::optional<TimePoint> due_;
};

TEST_F(DockerJobTest, ALossIsMadeAgainAfterAWhile) {
  Apply({Task()});
  Start();
  Ended(137);
  EXPECT_EQ(events_.back().end.signal, 9);
  EXPECT_FALSE(events_.back().end.out_of_memory);
  EXPECT_THAT(Step(), IsEmpty());
  ASSERT_TRUE(due_.has_value());
  now_ = *due_;
  const Action again = One(Kind::kStart);
  EXPECT_EQ(again.incarnation, 1);
  EXPECT_EQ(again.container, "c0");  // to be removed first
  EXPECT_THAT(Phases(), ElementsAre(TaskPhase::kStarting, TaskPhase::kRunning, TaskPhase::kLost,
                                    TaskPhase::kStarting));
}

TEST_F(DockerJobTest, OutOfMemoryIsToldApart) {
  Apply({Task()});
  Start();
  Ended(137, true);
  EXPECT_TRUE(events_.back().end.out_of_memory);
  EXPECT_THAT(events_.back().end.reason,
              HasSubstr("memory limit of 48 MiB; raise resources.memory"));
}

TEST_F(DockerJobTest, AKillThatDockerDoesNotExplainNamesTheMemoryLimitToo) {
  Apply({Task()});
  Start();
  Ended(137);
  EXPECT_FALSE(events_.back().end.out_of_memory);
  EXPECT_THAT(events_.back().end.reason,
              HasSubstr("by its memory limit of 48 MiB or from outside of Shoal"));
}

TEST_F(DockerJobTest, AnEndThatIsHeardBeforeTheStartWasAnsweredIsNotLost) {
  Apply({Task()});
  const Action start = One(Kind::kStart);
  job_.OnContainerEnd(kWorker, 0);
  EXPECT_THAT(Step(), IsEmpty());  // one action of a task at a time
  ApplyOutcome(start, Status::Ok());
  EXPECT_EQ(One(Kind::kInspect).container, "c0");
}

TEST_F(DockerJobTest, AnEndOfAnEarlierIncarnationIsNoNews) {
  Apply({Task()});
  Start();
  job_.OnContainerEnd(kWorker, 7);
  EXPECT_THAT(Step(), IsEmpty());
}

TEST_F(DockerJobTest, WhatIsMissingInAListIsLookedAt) {
  Apply({Task()});
  Start();
  job_.ReconcileRunning({{"c0", false}}, now_);
  EXPECT_THAT(Step(), IsEmpty());
  job_.ReconcileRunning({{"other", false}}, now_);
  Outcome gone;
  gone.action = One(Kind::kInspect);  // and there is no such container
  job_.ApplyOutcome(gone, now_, &events_);
  EXPECT_EQ(events_.back().phase, TaskPhase::kLost);
  EXPECT_THAT(events_.back().end.reason, HasSubstr("removed outside of Shoal"));
}

TEST_F(DockerJobTest, ADaemonThatIsAwayCountsAgainstNobody) {
  Apply({Task()});
  for (int i = 0; i < 20; ++i) {
    ApplyOutcome(One(Kind::kStart), Unavailable("no daemon"));
    EXPECT_THAT(Step(), IsEmpty());
    now_ = *due_;
  }
  const Action start = One(Kind::kStart);
  EXPECT_EQ(start.incarnation, 0);
  ApplyOutcome(start, Status::Ok());
  EXPECT_THAT(Phases(), ElementsAre(TaskPhase::kStarting, TaskPhase::kRunning));
}

TEST_F(DockerJobTest, ARefusalIsTold) {
  Apply({Task()});
  ApplyOutcome(One(Kind::kStart), NotFound("no such image"));
  EXPECT_EQ(events_.back().phase, TaskPhase::kRefused);
  EXPECT_EQ(events_.back().end.reason, "no such image");
  EXPECT_THAT(Step(), IsEmpty());
}

TEST_F(DockerJobTest, FiveDeathsInARowAreGivenUpWithTheLastWords) {
  Apply({Task()});
  for (int i = 0; i < 5; ++i) {
    Start();
    Ended(3);
    Step();
    if (due_) now_ = *due_;
  }
  EXPECT_EQ(events_.back().phase, TaskPhase::kRefused);
  EXPECT_THAT(events_.back().end.reason, HasSubstr("exited with code 3 and said: last"));
}

TEST_F(DockerJobTest, StopTermsThenKillsAndLooksUntilItIsGone) {
  Apply({Task()});
  Start();
  job_.Stop(now_ + milliseconds(100));
  const Action term = One(Kind::kSignal);
  EXPECT_EQ(term.signal, "TERM");
  ApplyOutcome(term, Status::Ok());
  EXPECT_THAT(Step(), IsEmpty());
  now_ = *due_;
  const Action kill = One(Kind::kSignal);
  EXPECT_EQ(kill.signal, "KILL");
  ApplyOutcome(kill, Status::Ok());
  EXPECT_THAT(Step(), IsEmpty());
  now_ = *due_;  // nothing was heard of it
  Outcome look;
  look.action = One(Kind::kInspect);
  ContainerState state;
  state.exit_code = 137;
  look.state = state;
  job_.ApplyOutcome(look, now_, &events_);
  EXPECT_EQ(events_.back().phase, TaskPhase::kEnded);
  EXPECT_FALSE(job_.AnyAlive());
}

TEST_F(DockerJobTest, AStopWhileItStartsStopsIt) {
  Apply({Task()});
  const Action start = One(Kind::kStart);
  job_.Stop(now_ + milliseconds(100));
  EXPECT_TRUE(job_.AnyAlive());
  ApplyOutcome(start, Status::Ok());
  EXPECT_EQ(One(Kind::kSignal).signal, "TERM");
}

TEST_F(DockerJobTest, WhatIsNotNamedGoesAndComesBackAsANewOne) {
  Apply({Task(), Task(1)});
  for (const Action& start : Step())
    ApplyOutcome(start, Status::Ok(), "c" + std::to_string(start.key.second));
  Apply({Task(1)});
  ApplyOutcome(One(Kind::kSignal), Status::Ok());
  Ended(143);
  EXPECT_EQ(events_.back().phase, TaskPhase::kEnded);
  const Action remove = One(Kind::kRemove);
  EXPECT_EQ(remove.container, "c0");
  Apply({Task(), Task(1)});  // while it is being removed
  ApplyOutcome(remove, Status::Ok());
  EXPECT_EQ(One(Kind::kStart).incarnation, 1);
}

TEST_F(DockerJobTest, AdoptionGoesByTheLatestOfEach) {
  const auto container = [](int incarnation, bool running, int exit_code) {
    ContainerSummary one;
    one.id = "c" + std::to_string(incarnation);
    one.task = {"job", "worker", 0, incarnation, 0};
    one.running = running;
    one.exit_code = exit_code;
    return one;
  };
  EXPECT_TRUE(job_.Adopt({container(2, true, -1), container(1, false, 3)}, now_));
  EXPECT_EQ(job_.ContainerOf(kWorker), "c2");
  EXPECT_EQ(job_.List().at(0).phase, TaskPhase::kRunning);
  Apply({Task()});
  EXPECT_THAT(Step(), IsEmpty());
  Ended(1);
  now_ = now_ + milliseconds(1000);
  EXPECT_EQ(One(Kind::kStart).incarnation, 3);
}

TEST_F(DockerJobTest, APausedTaskIsReplacedAfterAWhile) {
  Apply({Task()});
  Start();
  job_.OnPauseChange(kWorker, 0, true, now_);
  EXPECT_THAT(Step(), IsEmpty());
  ASSERT_TRUE(due_.has_value());
  now_ = *due_;
  const Action kill = One(Kind::kSignal);
  EXPECT_EQ(kill.signal, "KILL");
  ApplyOutcome(kill, Status::Ok());
  now_ += std::chrono::seconds(1);
  Ended(137);
  EXPECT_EQ(events_.back().phase, TaskPhase::kLost);
  EXPECT_THAT(events_.back().end.reason, HasSubstr("its container was paused (docker pause)"));
  EXPECT_THAT(Step(), IsEmpty());
  ASSERT_TRUE(due_.has_value());
  now_ = *due_;
  EXPECT_EQ(One(Kind::kStart).incarnation, 1);
}

TEST_F(DockerJobTest, AShortPauseChangesNothing) {
  Apply({Task()});
  Start();
  job_.OnPauseChange(kWorker, 0, true, now_);
  job_.OnPauseChange(kWorker, 0, false, now_);
  job_.ReconcileRunning({{"c0", true}}, now_);  // and one whose event was missed
  job_.ReconcileRunning({{"c0", false}}, now_);
  now_ += std::chrono::hours(1);
  EXPECT_THAT(Step(), IsEmpty());
}

TEST_F(DockerJobTest, APauseIsCountedFromItsBeginning) {
  Apply({Task()});
  Start();
  job_.ReconcileRunning({{"c0", true}}, now_);
  EXPECT_THAT(Step(), IsEmpty());
  const auto due = due_;
  now_ += std::chrono::seconds(1);
  job_.ReconcileRunning({{"c0", true}}, now_);
  EXPECT_THAT(Step(), IsEmpty());
  EXPECT_EQ(due_, due);
}

}  // namespace
}  // namespace shoal::engine::docker
