// The contract of every engine. The fake engine is the reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/id.h"
#include "contract/harness.h"

namespace shoal::engine {
namespace {

using std::chrono::milliseconds;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EngineContract : public testing::TestWithParam<EngineUnderTest> {
 protected:
  void SetUp() override {
    harness_ = GetParam().make();
    Observe();
  }
  void TearDown() override {
    watch_.reset();
    EXPECT_TRUE(engine().Stop(job_, milliseconds(0)).ok());
    EXPECT_EQ(harness_->Alive(job_), 0);
  }
  Engine& engine() { return harness_->engine(); }
  void Observe() {
    watch_ = engine().Watch(job_, [this](const TaskEvent& event) {
      std::lock_guard lock(mu_);
      events_.push_back(event);
    });
  }
  void Reopen() {
    watch_.reset();
    harness_->Reopen();
    events_.clear();
    Observe();
  }
  DesiredJob Job(std::vector<DesiredTask> tasks) {
    DesiredJob job{job_, harness_->job_dir(), std::move(tasks)};
    harness_->Prepare(&job);
    return job;
  }
  DesiredTask Task(TaskBehavior kind, const std::string& role = "worker", int index = 0) {
    return harness_->Task(kind, role, index);
  }
  // The phases of one task in the order of their events.
  std::vector<TaskPhase> Phases(const std::string& role = "worker", int index = 0) {
    std::lock_guard lock(mu_);
    std::vector<TaskPhase> phases;
    for (const TaskEvent& event : events_) {
      if (event.role == role && event.index == index) phases.push_back(event.phase);
    }
    return phases;
  }
  TaskEvent Last(const std::string& role = "worker", int index = 0) {
    std::lock_guard lock(mu_);
    for (auto it = events_.rbegin(); it != events_.rend(); ++it) {
      if (it->role == role && it->index == index) return *it;
    }
    return {};
  }
  bool AwaitPhase(TaskPhase phase, const std::string& role = "worker", int index = 0,
                  int incarnation = 0) {
    return harness_->Await([&] {
      std::lock_guard lock(mu_);
      return std::any_of(events_.begin(), events_.end(), [&](const TaskEvent& event) {
        return event.role == role && event.index == index && event.phase == phase &&
               event.incarnation >= incarnation;
      });
    });
  }
  size_t EventCount() {
    std::lock_guard lock(mu_);
    return events_.size();
  }

  std::unique_ptr<Harness> harness_;
  const std::string job_ = "contract-" + RandomHex(4);
  std::unique_ptr<Engine::Watcher> watch_;
  std::mutex mu_;
  std::vector<TaskEvent> events_;  // guarded by mu_
};

TEST_P(EngineContract, HasANameAndCapacity) {
  const EngineUnderTest& expected = GetParam();
  EXPECT_EQ(engine().name(), expected.engine != nullptr ? expected.engine : expected.name);
  auto capacity = engine().GetCapacity();
  ASSERT_TRUE(capacity.ok());
  EXPECT_GT(capacity->cpu, 0);
  EXPECT_GT(capacity->memory_bytes, 0);
}

TEST_P(EngineContract, ApplyStartsEveryTask) {
  ASSERT_TRUE(engine()
                  .Apply(Job({Task(TaskBehavior::kRuns, "coordinator"),
                              Task(TaskBehavior::kRuns, "worker", 0),
                              Task(TaskBehavior::kRuns, "worker", 1)}))
                  .ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "coordinator"));
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 0));
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 1));
  EXPECT_EQ(harness_->Alive(job_), 3);
  EXPECT_THAT(Phases(), ElementsAre(TaskPhase::kStarting, TaskPhase::kRunning));
}

TEST_P(EngineContract, ApplyIsIdempotent) {
  const DesiredJob job = Job({Task(TaskBehavior::kRuns)});
  ASSERT_TRUE(engine().Apply(job).ok());
  ASSERT_TRUE(engine().Apply(job).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning));
  ASSERT_TRUE(engine().Apply(job).ok());
  DesiredJob more = job;
  more.tasks.push_back(Task(TaskBehavior::kRuns, "worker", 1));
  ASSERT_TRUE(engine().Apply(more).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 1));
  EXPECT_EQ(harness_->Alive(job_), 2);
  EXPECT_THAT(Phases(), ElementsAre(TaskPhase::kStarting, TaskPhase::kRunning));
}

TEST_P(EngineContract, ApplyStopsWhatIsNotNamedAnyMore) {
  const DesiredTask kept = Task(TaskBehavior::kRuns, "worker", 0);
  ASSERT_TRUE(engine().Apply(Job({kept, Task(TaskBehavior::kRuns, "worker", 1)})).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 0));  // they may come in any order
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 1));
  ASSERT_TRUE(engine().Apply(Job({kept})).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kEnded, "worker", 1));
  EXPECT_EQ(Last("worker", 1).end.signal, 15);
  EXPECT_EQ(harness_->Alive(job_), 1);
  // Listed again, it is a new incarnation.
  ASSERT_TRUE(engine().Apply(Job({kept, Task(TaskBehavior::kRuns, "worker", 1)})).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 1, 1));
  EXPECT_THAT(Phases("worker", 0), ElementsAre(TaskPhase::kStarting, TaskPhase::kRunning));
}

TEST_P(EngineContract, ATaskThatSucceededIsNotStartedAgain) {
  const DesiredJob job =
      Job({Task(TaskBehavior::kSucceeds), Task(TaskBehavior::kRuns, "worker", 1)});
  ASSERT_TRUE(engine().Apply(job).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kEnded));
  EXPECT_EQ(Last().end.exit_code, 0);
  EXPECT_EQ(Last().end.signal, 0);
  ASSERT_TRUE(engine().Apply(job).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 1));
  EXPECT_THAT(Phases(), ElementsAre(TaskPhase::kStarting, TaskPhase::kRunning, TaskPhase::kEnded));
}

TEST_P(EngineContract, ATaskThatSucceededAndWasGivenUpIsStartedWhenItIsNamedAgain) {
  const DesiredTask kept = Task(TaskBehavior::kRuns, "worker", 0);
  const DesiredJob both = Job({kept, Task(TaskBehavior::kSucceeds, "worker", 1)});
  ASSERT_TRUE(engine().Apply(both).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kEnded, "worker", 1));
  ASSERT_TRUE(engine().Apply(Job({kept})).ok());
  ASSERT_TRUE(engine().Apply(both).ok());  // at once: the engine may not have looked meanwhile
  ASSERT_TRUE(AwaitPhase(TaskPhase::kEnded, "worker", 1, 1));
}

TEST_P(EngineContract, ALostTaskGetsANewIncarnation) {
  ASSERT_TRUE(
      engine()
          .Apply(Job({Task(TaskBehavior::kRuns), Task(TaskBehavior::kFailsOnce, "worker", 1)}))
          .ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning));
  harness_->KillTask(job_, "worker", 0);
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 0, 1));
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 1, 1));
  for (int index : {0, 1}) {
    EXPECT_THAT(Phases("worker", index),
                ElementsAre(TaskPhase::kStarting, TaskPhase::kRunning, TaskPhase::kLost,
                            TaskPhase::kStarting, TaskPhase::kRunning));
  }
  std::lock_guard lock(mu_);
  const auto lost = [&](int index) {
    return *std::find_if(events_.begin(), events_.end(), [&](const TaskEvent& event) {
      return event.index == index && event.phase == TaskPhase::kLost;
    });
  };
  EXPECT_EQ(lost(0).end.signal, 9);
  EXPECT_THAT(lost(0).end.reason, HasSubstr("killed by signal 9"));
  EXPECT_EQ(lost(1).end.exit_code, 77);
  EXPECT_EQ(lost(1).incarnation, 0);
}

TEST_P(EngineContract, WhatRunsStaysOnAnExcludedHostAndWhatIsMadeAgainDoesNotComeToIt) {
  DesiredTask task = Task(TaskBehavior::kRuns);
  ASSERT_TRUE(engine().Apply(Job({task})).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning));
  task.excluded_hosts = {"no-such-host"};
  ASSERT_TRUE(engine().Apply(Job({task})).ok());
  harness_->KillTask(job_, "worker", 0);
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 0, 1));
  if (harness_->Hosts().empty()) return;
  task.excluded_hosts = harness_->Hosts();
  const size_t told = EventCount();
  ASSERT_TRUE(engine().Apply(Job({task})).ok());
  EXPECT_EQ(EventCount(), told);
  EXPECT_EQ(harness_->Alive(job_), 1);
  harness_->KillTask(job_, "worker", 0);
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRefused));
  EXPECT_THAT(Last().end.reason,
              AnyOf(HasSubstr("not to be used"), HasSubstr("excluded"), HasSubstr("the only one")));
  EXPECT_EQ(harness_->Alive(job_), 0);
  // There is room on it again, as far as this engine is concerned.
  ASSERT_TRUE(engine().Apply(Job({Task(TaskBehavior::kRuns)})).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 0, 2));
}

TEST_P(EngineContract, NotRestartedIfNotWanted) {
  DesiredTask task = Task(TaskBehavior::kRuns);
  task.restart_if_lost = false;
  ASSERT_TRUE(engine().Apply(Job({task})).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning));
  harness_->KillTask(job_, "worker", 0);
  ASSERT_TRUE(AwaitPhase(TaskPhase::kEnded));
  EXPECT_EQ(Last().end.signal, 9);
  EXPECT_EQ(harness_->Alive(job_), 0);
}

TEST_P(EngineContract, ATaskThatCannotComeUpIsGivenUpWithItsLastWords) {
  ASSERT_TRUE(engine().Apply(Job({Task(TaskBehavior::kFailsAlways)})).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRefused));
  EXPECT_EQ(Last().incarnation, 4);
  EXPECT_EQ(Last().end.exit_code, 3);
  EXPECT_EQ(Last().end.reason,
            "ended 5 times in a row as soon as it was started; the last time it exited with code 3 "
            "and said: no corpus");
  EXPECT_EQ(harness_->Alive(job_), 0);
}

TEST_P(EngineContract, ARefusedStartGivesAReason) {
  const DesiredJob job =
      Job({Task(TaskBehavior::kCannotStart), Task(TaskBehavior::kRuns, "worker", 1)});
  ASSERT_TRUE(engine().Apply(job).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRefused));
  EXPECT_THAT(Last().end.reason, HasSubstr("no such program"));
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 1));
  // Another Apply tries again.
  ASSERT_TRUE(engine()
                  .Apply(Job({Task(TaskBehavior::kRuns), Task(TaskBehavior::kRuns, "worker", 1)}))
                  .ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 0, 1));
}

TEST_P(EngineContract, NonsenseIsRefusedWithAReason) {
  const auto code = [&](const DesiredJob& job) { return engine().Apply(job).code(); };
  DesiredTask task = Task(TaskBehavior::kRuns);
  task.role = "../worker";
  EXPECT_EQ(code(Job({task})), Code::kInvalidArgument);
  task = Task(TaskBehavior::kRuns);
  task.index = -1;
  EXPECT_EQ(code(Job({task})), Code::kInvalidArgument);
  task = Task(TaskBehavior::kRuns);
  task.argv.clear();
  EXPECT_EQ(code(Job({task})), Code::kInvalidArgument);
  EXPECT_EQ(code(Job({Task(TaskBehavior::kRuns), Task(TaskBehavior::kRuns)})),
            Code::kInvalidArgument);
  EXPECT_EQ(code({"no/job", harness_->job_dir(), {Task(TaskBehavior::kRuns)}}),
            Code::kInvalidArgument);
  EXPECT_EQ(harness_->Alive(job_), 0);
}

TEST_P(EngineContract, StopLeavesNothing) {
  ASSERT_TRUE(engine()
                  .Apply(Job({Task(TaskBehavior::kRuns, "coordinator"),
                              Task(TaskBehavior::kStubborn, "worker", 0),
                              Task(TaskBehavior::kRuns, "worker", 1)}))
                  .ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "coordinator"));
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 0));
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 1));
  ASSERT_TRUE(engine().Stop(job_, milliseconds(50)).ok());
  EXPECT_EQ(harness_->Alive(job_), 0);
  // Told before Stop returned.
  EXPECT_EQ(Last("worker", 0).phase, TaskPhase::kEnded);
  EXPECT_EQ(Last("worker", 1).phase, TaskPhase::kEnded);
  EXPECT_EQ(Last("worker", 1).end.signal, 15);
  EXPECT_EQ(Last("coordinator", 0).phase, TaskPhase::kEnded);
  EXPECT_TRUE(engine().Stop(job_, milliseconds(50)).ok());
  EXPECT_EQ(engine().Dial(job_).status().code(), Code::kNotFound);
}

TEST_P(EngineContract, StopOfALostTaskThatWaitsToBeStartedAgain) {
  ASSERT_TRUE(engine().Apply(Job({Task(TaskBehavior::kFailsAlways)})).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kLost));
  ASSERT_TRUE(engine().Stop(job_, milliseconds(50)).ok());
  const size_t before = Phases().size();
  EXPECT_EQ(harness_->Alive(job_), 0);
  // Long after its time another one has come up, and it has not.
  ASSERT_TRUE(engine().Apply(Job({Task(TaskBehavior::kFailsOnce, "probe")})).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "probe", 0, 1));
  EXPECT_EQ(Phases().size(), before);
}

TEST_P(EngineContract, StopOfAnUnknownJobIsFine) {
  EXPECT_TRUE(engine().Stop("nobody-knows-it", milliseconds(0)).ok());
  EXPECT_EQ(engine().Stop("../etc", milliseconds(0)).code(), Code::kInvalidArgument);
}

TEST_P(EngineContract, DestructionStopsNothingAndAdoptFindsAll) {
  ASSERT_TRUE(
      engine()
          .Apply(Job({Task(TaskBehavior::kRuns, "coordinator"), Task(TaskBehavior::kFailsOnce)}))
          .ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 0, 1));
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "coordinator"));
  Reopen();
  EXPECT_EQ(harness_->Alive(job_), 2);
  auto tasks = engine().Adopt(job_, harness_->job_dir());
  ASSERT_TRUE(tasks.ok()) << tasks.status().message();
  ASSERT_EQ(tasks->size(), 2u);
  EXPECT_EQ((*tasks)[0].role, "coordinator");
  EXPECT_EQ((*tasks)[0].phase, TaskPhase::kRunning);
  EXPECT_EQ((*tasks)[1].role, "worker");
  EXPECT_EQ((*tasks)[1].incarnation, 1);
  EXPECT_EQ((*tasks)[1].phase, TaskPhase::kRunning);
  ASSERT_TRUE(engine().Stop(job_, milliseconds(1000)).ok());
  EXPECT_EQ(harness_->Alive(job_), 0);
}

TEST_P(EngineContract, AnAdoptedTaskIsRestartedWhenLost) {
  const DesiredJob job = Job({Task(TaskBehavior::kRuns, "coordinator"), Task(TaskBehavior::kRuns)});
  ASSERT_TRUE(engine().Apply(job).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker"));
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "coordinator"));  // they may come in any order
  Reopen();
  ASSERT_TRUE(engine().Adopt(job_, harness_->job_dir()).ok());
  ASSERT_TRUE(engine().Apply(job).ok());  // what runs is left alone
  harness_->KillTask(job_, "worker", 0);
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning, "worker", 0, 1));
  EXPECT_THAT(Phases("coordinator"), IsEmpty());
}

TEST_P(EngineContract, AdoptOfNothingIsEmpty) {
  auto tasks = engine().Adopt(job_, harness_->job_dir());
  ASSERT_TRUE(tasks.ok()) << tasks.status().message();
  EXPECT_THAT(*tasks, IsEmpty());
}

TEST_P(EngineContract, AWatchEndsWithItsObject) {
  ASSERT_TRUE(engine().Apply(Job({Task(TaskBehavior::kRuns)})).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning));
  watch_.reset();
  const size_t before = EventCount();
  std::atomic<int> others{0};
  auto other = engine().Watch(job_, [&](const TaskEvent&) { ++others; });
  harness_->KillTask(job_, "worker", 0);
  ASSERT_TRUE(harness_->Await([&] { return others >= 3; }));  // lost, starting, running
  EXPECT_EQ(EventCount(), before);
}

TEST_P(EngineContract, AWatchMayEndItselfAndCallTheEngine) {
  std::unique_ptr<Engine::Watcher> self;
  std::atomic<int> calls{0};
  std::atomic<bool> dialled{false};
  self = engine().Watch(job_, [&](const TaskEvent&) {
    ++calls;
    dialled = engine().Dial(job_).status().code() == Code::kUnavailable;
    self.reset();
  });
  ASSERT_TRUE(engine().Apply(Job({Task(TaskBehavior::kRuns)})).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(dialled);
}

TEST_P(EngineContract, DialGivesWhereTheCoordinatorListens) {
  EXPECT_EQ(engine().Dial(job_).status().code(), Code::kNotFound);
  ASSERT_TRUE(engine().Apply(Job({Task(TaskBehavior::kRuns, "coordinator")})).ok());
  auto endpoint = engine().Dial(job_);
  EXPECT_EQ(endpoint.status().code(), Code::kUnavailable);
  harness_->Listen(job_, {"127.0.0.1", 4711});
  endpoint = engine().Dial(job_);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
  EXPECT_EQ(endpoint->host, "127.0.0.1");
  if (!harness_->DialsRelay()) {
    EXPECT_EQ(endpoint->port, 4711);
  }
}

TEST_P(EngineContract, TaskLogGivesTheTail) {
  ASSERT_TRUE(engine().Apply(Job({Task(TaskBehavior::kTalks)})).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning));
  std::string expected;
  for (int i = 0; i < 199; ++i) expected += "line\n";
  expected += "last words\n";
  const std::string aside = "aside\n";
  std::string whole;
  ASSERT_TRUE(harness_->Await([&] {
    whole = engine().TaskLog(job_, "worker", 0, 1 << 20).value_or("");
    return whole.size() >= expected.size() + aside.size();
  })) << "got '"
      << whole << "'; " << engine().TaskLog(job_, "worker", 0, 1 << 20).status().message();
  EXPECT_EQ(engine().TaskLog(job_, "worker", 0, 20).value_or("?"), whole.substr(whole.size() - 20));
  // A container's two outputs are two pipes: each keeps its order, and the two have none between
  // them.
  const size_t at = whole.find(aside);
  ASSERT_NE(at, std::string::npos) << whole;
  EXPECT_EQ(whole.erase(at, aside.size()), expected);
  EXPECT_EQ(engine().TaskLog(job_, "worker", 9, 100).value_or("?"), "");
}

TEST_P(EngineContract, NoCommandRunsWhereNothingRuns) {
  ExecSpec spec;
  spec.argv = {"true"};
  EXPECT_EQ(engine().Exec(job_, "worker", 0, spec).status().code(), Code::kNotFound);
  ASSERT_TRUE(engine().Apply(Job({Task(TaskBehavior::kRuns)})).ok());
  ASSERT_TRUE(AwaitPhase(TaskPhase::kRunning));
  EXPECT_EQ(engine().Exec(job_, "worker", 1, spec).status().code(), Code::kNotFound);
  EXPECT_EQ(engine().Exec(job_, "server", 0, spec).status().code(), Code::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineContract, testing::ValuesIn(EnginesUnderTest()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace shoal::engine
