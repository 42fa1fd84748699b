#include "queue/core/scheduler.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shoal::queue {
namespace {

using std::chrono::seconds;

Amounts Gpus(int64_t n) { return {{0, 0, n * 1000}}; }

FlavorMachines Machines(int64_t gpus) {
  FlavorMachines machines;
  machines.total[2] = gpus * 1000;
  return machines;
}

QueueSpec Queue(const std::string& name, const std::string& parent, int64_t gpus) {
  QueueSpec queue;
  queue.name = name;
  queue.parent = parent;
  if (gpus > 0) queue.quota["a"][2].nominal = gpus * 1000;
  return queue;
}

Policy Cohort(int64_t first, int64_t second) {
  Policy policy = DefaultPolicy({"a"});
  policy.queues = {Queue("root", "", 0), Queue("x", "root", first), Queue("y", "root", second)};
  policy.default_queue = "x";
  return policy;
}

class SchedulerTest : public ::testing::Test {
 protected:
  void Make(const Policy& policy, int64_t gpus) {
    scheduler_ = std::make_unique<Scheduler>(
        policy, std::map<std::string, FlavorMachines>{{"a", Machines(gpus)}});
  }
  JobSpec Spec(const std::string& id, const std::string& queue, int64_t gpus, int64_t run = 0,
               int32_t priority = 0) {
    JobSpec spec;
    spec.id = spec.name = id;
    spec.queue = queue;
    spec.order = ++order_;
    spec.priority = priority;
    spec.run_time = seconds(run);
    spec.request.unit = Gpus(gpus);
    return spec;
  }
  void Submit(const JobSpec& spec) {
    const Result<JobRef> job = scheduler_->Submit(spec, now_);
    ASSERT_TRUE(job.ok()) << job.status().message();
  }
  void End(const std::string& id) { scheduler_->End(scheduler_->Find(id), now_); }
  // "admit a, preempt b for c, reserve c @30, resize d 2, refuse e".
  std::string Decide() {
    std::string text;
    for (const Decision& decision : scheduler_->Decide(now_)) {
      const char* const kNames[] = {"admit", "resize", "preempt", "reserve", "refuse"};
      text += (text.empty() ? "" : ", ") + std::string(kNames[static_cast<int>(decision.action)]) +
              " " + scheduler_->job(decision.job).spec.id;
      if (decision.action == Action::kResize || decision.size > 1)
        text += " " + std::to_string(decision.size);
      if (decision.beneficiary != kNoIndex)
        text += " for " + scheduler_->job(decision.beneficiary).spec.id;
      if (decision.action == Action::kReserve)
        text += decision.at == kForever ? " @?" : " @" + std::to_string(decision.at.count() / 1000);
    }
    return text;
  }
  std::string Why(const std::string& id) {
    const JobRef job = scheduler_->Find(id);
    return ReasonText(scheduler_->state(), job, scheduler_->ReasonOf(job));
  }

  std::unique_ptr<Scheduler> scheduler_;
  Millis now_{0};
  int64_t order_ = 0;
};

TEST_F(SchedulerTest, TheFirstThatDoesNotFitIsReservedAndNamesWhoHolds) {
  Make(DefaultPolicy({"a"}), 4);
  Submit(Spec("big", "", 2));
  Submit(Spec("small", "", 1));
  EXPECT_EQ(Decide(), "admit big, admit small");
  Submit(Spec("first", "", 3));
  Submit(Spec("second", "", 1));
  EXPECT_EQ(Decide(), "reserve first @?");
  EXPECT_EQ(Why("first"), "first in line; needs 3 GPU and 1 GPU is free; big holds 2 GPU");
  EXPECT_EQ(Why("second"), "1 job is before it; it would delay first, which is next");
}

TEST_F(SchedulerTest, ImpossibleJobsAreRefusedAndHoldNobodyBack) {
  Make(DefaultPolicy({"a"}), 4);
  Submit(Spec("huge", "", 5));
  Submit(Spec("fine", "", 4));
  EXPECT_EQ(Decide(), "refuse huge, admit fine");
  EXPECT_EQ(Why("huge"),
            "huge can never start here: all its tasks together ask for 5 GPU, and there is 4 GPU "
            "in all; ask for less or for fewer replicas");
  EXPECT_FALSE(scheduler_->Submit(Spec("lost", "nowhere", 1), now_).ok());
}

TEST_F(SchedulerTest, BackfillStartsOnlyWhatDoesNotDelayTheReservedJob) {
  Make(DefaultPolicy({"a"}), 4);
  Submit(Spec("running", "", 3, 100));
  Submit(Spec("first", "", 4, 50));
  Submit(Spec("long", "", 1, 200));
  Submit(Spec("brief", "", 1, 100));
  EXPECT_EQ(Decide(), "admit running, reserve first @100, admit brief");
  EXPECT_EQ(Why("long"), "1 job is before it; needs 1 GPU and 0 GPU is free; running holds 3 GPU");
  now_ = seconds(90);
  End("brief");
  EXPECT_EQ(Decide(), "");
  EXPECT_EQ(Why("long"), "1 job is before it; it would delay first, which is next");
  now_ = seconds(95);
  End("running");
  EXPECT_EQ(Decide(), "admit first, reserve long @145");
}

TEST_F(SchedulerTest, AJobBesideTheReservedOneMayRunForEver) {
  Make(DefaultPolicy({"a"}), 8);
  Submit(Spec("running", "", 6, 100));
  Submit(Spec("first", "", 7, 50));
  Submit(Spec("one", "", 1));
  Submit(Spec("two", "", 1));
  EXPECT_EQ(Decide(), "admit running, reserve first @100, admit one");
}

TEST_F(SchedulerTest, StrictQueuesWaitForTheirFirst) {
  Policy policy = DefaultPolicy({"a"});
  policy.queues[0].order = QueueOrder::kStrict;
  Make(policy, 4);
  Submit(Spec("running", "", 3));
  Submit(Spec("first", "", 2));
  Submit(Spec("second", "", 1));
  EXPECT_EQ(Decide(), "admit running, reserve first @?");
  EXPECT_EQ(Why("second"), "behind first, which is first in line; 1 job is before it");
}

TEST_F(SchedulerTest, HigherPriorityPreemptsWithinItsQueueWhatLosesLeastWork) {
  Make(DefaultPolicy({"a"}), 4);
  Submit(Spec("old", "", 2));
  Submit(Spec("saved", "", 2));
  Decide();
  now_ = seconds(1000);
  scheduler_->Saved(scheduler_->Find("saved"), now_);
  Submit(Spec("urgent", "", 2, 0, 10));
  EXPECT_EQ(Decide(), "preempt saved for urgent, reserve urgent @1030");
  EXPECT_EQ(Why("urgent"), "its resources are set aside; 1 job is being saved and stopped for it");
  EXPECT_EQ(Decide(), "");
  scheduler_->Requeue(scheduler_->Find("saved"), RequeueCause::kPreempted, now_);
  EXPECT_EQ(Decide(), "admit urgent, reserve saved @?");
}

TEST_F(SchedulerTest, LentCapacityComesBackInOneDecision) {
  Make(Cohort(4, 4), 8);
  for (int i = 0; i < 8; ++i) Submit(Spec("x" + std::to_string(i), "x", 1));
  EXPECT_EQ(Decide().find("reserve"), std::string::npos);
  Submit(Spec("y", "y", 4));
  EXPECT_EQ(
      Decide(),
      "preempt x7 for y, preempt x6 for y, preempt x5 for y, preempt x4 for y, reserve y @30");
  // What x lent is x's nominal quota: y cannot take it.
  Submit(Spec("y1", "y", 1, 0, 100));
  EXPECT_EQ(Decide().find("preempt x"), std::string::npos);
}

TEST_F(SchedulerTest, ElasticJobsShrinkBeforeAnybodyIsPreemptedAndGrowAgain) {
  Make(DefaultPolicy({"a"}), 8);
  JobSpec elastic = Spec("elastic", "", 1);
  elastic.request.least = 2;
  elastic.request.most = 8;
  Submit(elastic);
  EXPECT_EQ(Decide(), "admit elastic 8");
  Submit(Spec("other", "", 3));
  EXPECT_EQ(Decide(), "resize elastic 5 for other, reserve other @30");
  scheduler_->Resized(scheduler_->Find("elastic"), 5, now_);
  EXPECT_EQ(Decide(), "admit other");
  now_ = seconds(100);
  End("other");
  EXPECT_EQ(Decide(), "resize elastic 8");
}

TEST_F(SchedulerTest, JobsThatDidNotGatherComeBackAfterGrowingDistances) {
  Make(DefaultPolicy({"a"}), 8);
  Submit(Spec("job", "", 8));
  Millis last{0};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Decide(), "admit job");
    scheduler_->Requeue(scheduler_->Find("job"), RequeueCause::kNotGathered, now_);
    EXPECT_EQ(Decide(), "");
    const Millis distance = scheduler_->NextWake() - now_;
    EXPECT_GT(distance, last);
    last = distance;
    now_ += distance;
  }
}

TEST_F(SchedulerTest, UserLimitsHoldBackOnlyThatUser) {
  Policy policy = DefaultPolicy({"a"});
  policy.queues[0].per_user.amounts[2] = 2000;
  policy.queues[0].per_user.jobs = 2;
  Make(policy, 8);
  for (int i = 0; i < 3; ++i) {
    JobSpec spec = Spec("ann" + std::to_string(i), "", i == 0 ? 2 : 1);
    spec.user = "ann";
    Submit(spec);
  }
  JobSpec bob = Spec("bob", "", 2);
  bob.user = "bob";
  Submit(bob);
  JobSpec much = Spec("much", "", 3);
  much.user = "bob";
  Submit(much);
  EXPECT_EQ(Decide(), "refuse much, admit ann0, admit bob");
  EXPECT_EQ(Why("ann1"),
            "needs 1 GPU, and user ann may use 0 GPU more by the limit of queue default");
  End("ann0");
  EXPECT_EQ(Decide(), "admit ann1, admit ann2");
}

TEST_F(SchedulerTest, HeldQueuesAdmitNothingAndDrainedOnesArePreempted) {
  Make(Cohort(4, 4), 8);
  Submit(Spec("a", "x", 1));
  EXPECT_EQ(Decide(), "admit a");
  Policy policy = Cohort(4, 4);
  policy.queues[1].mode = QueueMode::kHold;
  ASSERT_TRUE(scheduler_->SetPolicy(policy, now_).ok());
  Submit(Spec("b", "x", 1));
  EXPECT_EQ(Decide(), "");
  EXPECT_EQ(Why("b"), "queue x is on hold");
  policy.queues[1].mode = QueueMode::kDrain;
  ASSERT_TRUE(scheduler_->SetPolicy(policy, now_).ok());
  EXPECT_EQ(Decide(), "preempt a");
  scheduler_->Requeue(scheduler_->Find("a"), RequeueCause::kPreempted, now_);
  EXPECT_EQ(Decide(), "");
  ASSERT_TRUE(scheduler_->SetPolicy(Cohort(4, 4), now_).ok());
  EXPECT_EQ(Decide(), "admit a, admit b");
}

TEST_F(SchedulerTest, APreemptionNamesTheDrainedQueue) {
  Make(Cohort(4, 4), 8);
  Submit(Spec("a", "x", 1));
  Decide();
  Policy policy = Cohort(4, 4);
  policy.queues[1].mode = QueueMode::kDrain;
  ASSERT_TRUE(scheduler_->SetPolicy(policy, now_).ok());
  const std::vector<Decision> decisions = scheduler_->Decide(now_);
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(ReasonText(scheduler_->state(), decisions[0].job, decisions[0].reason),
            "queue x is drained");
}

TEST_F(SchedulerTest, MaintenanceHoldsBackWhatWouldRunIntoItAndStopsTheRest) {
  Policy policy = DefaultPolicy({"a"});
  policy.windows = {{"power", seconds(100), seconds(200), {}}};
  Make(policy, 8);
  Submit(Spec("long", "", 1, 150));
  Submit(Spec("brief", "", 1, 50));
  Submit(Spec("unknown", "", 1));
  EXPECT_EQ(Decide(), "admit brief, admit unknown");
  EXPECT_EQ(Why("long"), "a maintenance window in 100 s");
  EXPECT_EQ(scheduler_->NextWake(), seconds(100));
  now_ = seconds(50);
  End("brief");
  now_ = seconds(100);
  EXPECT_EQ(Decide(), "preempt unknown");
  scheduler_->Requeue(scheduler_->Find("unknown"), RequeueCause::kPreempted, now_);
  EXPECT_EQ(Decide(), "");
  now_ = seconds(200);
  scheduler_->Decide(now_);
  EXPECT_EQ(scheduler_->job(scheduler_->Find("long")).phase, Phase::kRunning);
}

TEST_F(SchedulerTest, APolicyThatWouldStrandJobsIsRefusedWithTheirNames) {
  Make(Cohort(4, 4), 8);
  Submit(Spec("a", "y", 1));
  Decide();
  Policy policy = Cohort(4, 4);
  policy.queues.pop_back();
  const Status refused = scheduler_->SetPolicy(policy, now_);
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_NE(refused.message().find("a (a, queue 'y')"), std::string::npos) << refused.message();
  Submit(Spec("b", "y", 1));
  EXPECT_EQ(Decide(), "admit b");
}

TEST_F(SchedulerTest, MachinesThatVanishLeaveJobsWaiting) {
  Make(DefaultPolicy({"a"}), 8);
  Submit(Spec("a", "", 8));
  Submit(Spec("b", "", 8));
  Decide();
  scheduler_->SetMachines("a", Machines(4), now_);
  EXPECT_EQ(Decide(), "");
  EXPECT_EQ(scheduler_->ReasonOf(scheduler_->Find("b")).code, ReasonCode::kExceedsCapacity);
  End("a");
  EXPECT_EQ(Decide(), "");
  Submit(Spec("c", "", 3));
  EXPECT_EQ(Decide(), "admit c");
  scheduler_->SetMachines("a", Machines(16), now_);
  EXPECT_EQ(Decide(), "admit b");
}

// References into the policy outlive a change of machines: callers walk its flavors meanwhile.
TEST_F(SchedulerTest, AChangeOfMachinesKeepsThePolicy) {
  Make(DefaultPolicy({"a", "b"}), 8);
  const Policy* policy = &scheduler_->state().policy();
  for (const Flavor& flavor : policy->flavors)
    scheduler_->SetMachines(flavor.name, Machines(4), now_);
  EXPECT_EQ(&scheduler_->state().policy(), policy);
}

// What a stopping job holds is not given to a second one, in its queue or through the machines.
TEST_F(SchedulerTest, AQuotaIsNotExceededWhileAVictimStops) {
  Policy policy = Cohort(4, 4);
  policy.queues[1].quota["a"][2].borrow = 0;
  Make(policy, 16);
  Submit(Spec("low", "x", 4));
  Decide();
  Submit(Spec("high", "x", 2, 0, 5));
  EXPECT_EQ(Decide(), "preempt low for high, reserve high @30");
  Submit(Spec("later", "x", 2, 0, 5));
  EXPECT_EQ(Decide(), "reserve later @30");
  EXPECT_EQ(
      Why("later"),
      "first in line; needs 2 GPU and 0 GPU is free; low holds 4 GPU; expected to start in 30 s");
  scheduler_->Requeue(scheduler_->Find("low"), RequeueCause::kPreempted, now_);
  EXPECT_EQ(Decide().substr(0, 23), "admit high, admit later");
}

TEST_F(SchedulerTest, ACancelledJobLeavesItsVictimsToTheNext) {
  Make(DefaultPolicy({"a"}), 4);
  Submit(Spec("low", "", 4));
  Decide();
  Submit(Spec("high", "", 4, 0, 5));
  EXPECT_EQ(Decide(), "preempt low for high, reserve high @30");
  End("high");
  Submit(Spec("next", "", 3, 0, 5));
  EXPECT_EQ(Decide().substr(0, 12), "reserve next");
  scheduler_->Requeue(scheduler_->Find("low"), RequeueCause::kPreempted, now_);
  EXPECT_EQ(Decide().substr(0, 10), "admit next");
}

TEST_F(SchedulerTest, AVictimThatDoesNotStopIsReplaced) {
  Make(DefaultPolicy({"a"}), 4);
  Submit(Spec("one", "", 2));
  Submit(Spec("two", "", 2));
  Decide();
  Submit(Spec("high", "", 2, 0, 5));
  EXPECT_EQ(Decide(), "preempt two for high, reserve high @30");
  scheduler_->Keep(scheduler_->Find("two"), seconds(300), now_);
  EXPECT_EQ(Decide(), "preempt one for high, reserve high @30");
  EXPECT_EQ(scheduler_->job(scheduler_->Find("two")).phase, Phase::kRunning);
  scheduler_->Keep(scheduler_->Find("one"), seconds(600), now_);
  EXPECT_EQ(Decide(), "reserve high @?");
  EXPECT_EQ(scheduler_->job(scheduler_->Find("high")).phase, Phase::kWaiting);
  EXPECT_EQ(scheduler_->NextWake(), seconds(300));
  now_ = seconds(300);
  EXPECT_EQ(Decide(), "preempt two for high, reserve high @330");
  scheduler_->Requeue(scheduler_->Find("two"), RequeueCause::kPreempted, now_);
  EXPECT_EQ(Decide().substr(0, 10), "admit high");
}

TEST_F(SchedulerTest, AJobThatDoesNotShrinkKeepsItsSize) {
  Make(DefaultPolicy({"a"}), 8);
  JobSpec elastic = Spec("elastic", "", 1);
  elastic.request.least = 2;
  elastic.request.most = 8;
  Submit(elastic);
  EXPECT_EQ(Decide(), "admit elastic 8");
  Submit(Spec("other", "", 3));
  EXPECT_EQ(Decide(), "resize elastic 5 for other, reserve other @30");
  scheduler_->Keep(scheduler_->Find("elastic"), seconds(300), now_);
  EXPECT_EQ(Decide(), "reserve other @?");
  EXPECT_EQ(scheduler_->job(scheduler_->Find("elastic")).size, 8);
  EXPECT_EQ(scheduler_->state().ledger().usage(0)[0], Gpus(8));
}

TEST_F(SchedulerTest, OtherBoundsHoldFromNowOn) {
  Make(DefaultPolicy({"a"}), 8);
  JobSpec elastic = Spec("elastic", "", 1);
  elastic.request.least = 2;
  elastic.request.most = 8;
  Submit(elastic);
  Decide();
  Request request = elastic.request;
  request.most = 3;
  scheduler_->SetRequest(scheduler_->Find("elastic"), request, 3, now_);
  Submit(Spec("other", "", 5));
  EXPECT_EQ(Decide(), "reserve other @30");
  scheduler_->Resized(scheduler_->Find("elastic"), 3, now_);
  EXPECT_EQ(Decide(), "admit other");
  // A waiting job keeps its place.
  Submit(Spec("first", "", 8));
  Submit(Spec("second", "", 8));
  Decide();
  Request less;
  less.unit = Gpus(7);
  scheduler_->SetRequest(scheduler_->Find("first"), less, 0, now_);
  End("elastic");
  End("other");
  EXPECT_EQ(Decide().substr(0, 11), "admit first");
}

TEST_F(SchedulerTest, SharesDecideBetweenQueues) {
  Policy policy = Cohort(0, 0);
  policy.queues[0].quota["a"][2].nominal = 12000;
  policy.queues[1].weight = 2;
  policy.usage_half_life = Millis(0);
  Make(policy, 12);
  for (int i = 0; i < 12; ++i) Submit(Spec("x" + std::to_string(i), "x", 1));
  for (int i = 0; i < 12; ++i) Submit(Spec("y" + std::to_string(i), "y", 1));
  Decide();
  const NodeIndex x = scheduler_->state().tree().FindNode("x");
  EXPECT_EQ(scheduler_->state().ledger().held(0, x), Gpus(8));
}

TEST_F(SchedulerTest, TheFirstFlavorThatFitsIsTaken) {
  Policy policy = DefaultPolicy({"a", "b"});
  policy.queues[0].flavors = {"b", "a"};
  scheduler_ = std::make_unique<Scheduler>(
      policy, std::map<std::string, FlavorMachines>{{"a", Machines(4)}, {"b", Machines(2)}});
  Submit(Spec("one", "", 2));
  JobSpec only = Spec("only", "", 2);
  only.flavors = {"b"};
  Submit(only);
  Submit(Spec("three", "", 2));
  Decide();
  EXPECT_EQ(scheduler_->job(scheduler_->Find("one")).flavor, 1);
  EXPECT_EQ(scheduler_->job(scheduler_->Find("only")).phase, Phase::kWaiting);
  EXPECT_EQ(scheduler_->job(scheduler_->Find("three")).flavor, 0);
}

}  // namespace
}  // namespace shoal::queue
