// ShoalJobs from their creation to their end, with conflicts, lost answers, restarts and deletions
// at every point.
#include "api/operator/reconciler.h"

#include <gmock/gmock.h>

#include <memory>

#include "api/operator/test_operator.h"

namespace shoal::api {
namespace {

using job::JobState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ReconcilerTest : public testing::Test {
 protected:
  ReconcilerTest() { Restart(); }

  // A new operator over the same cluster and the same jobs.
  void Restart(const std::string& server = kTestServer) {
    reconciler_ =
        std::make_unique<Reconciler>(ReconcilerOptions{&cluster_, &jobs_, &clock_, server});
    for (const auto& [key, object] : cluster_.objects) reconciler_->Put(object);
  }
  void Apply(const ShoalJob& object) {
    cluster_.objects[object.key] = object;
    reconciler_->Put(object);
  }
  // The watch brings what is there.
  std::optional<Duration> Look() {
    for (const auto& [key, object] : cluster_.objects) reconciler_->Put(object);
    return reconciler_->Reconcile(kKey);
  }
  const ShoalJob& object() const { return cluster_.objects.at(kKey); }
  std::string phase() const { return object().StatusText("phase"); }
  void ChangeSpec(const std::string& job, bool suspend = false) {
    ShoalJob& changed = cluster_.objects.at(kKey);
    changed.job = ParseJsonObject(job).value();
    changed.suspend = suspend;
    ++changed.generation;
    cluster_.Touch(&changed);
  }

  const ResourceKey kKey{"research", "test"};
  FakeClock clock_;
  FakeCluster cluster_;
  FakeJobs jobs_;
  std::unique_ptr<Reconciler> reconciler_;
};

TEST_F(ReconcilerTest, SubmitsOnceAndFollowsTheJobToItsEnd) {
  Apply(TestObject());
  EXPECT_EQ(Look(), std::nullopt);
  EXPECT_EQ(jobs_.attempts, 1);
  EXPECT_EQ(phase(), "Pending");
  EXPECT_TRUE(object().has_finalizer());
  EXPECT_EQ(object().StatusText("job"), "test-uid-1");
  EXPECT_EQ(object().observed_generation(), 1);
  EXPECT_EQ(reconciler_->KeyOf("test-uid-1"), kKey);

  jobs_.jobs["uid-1"].state = JobState::kRunning;
  jobs_.jobs["uid-1"].workers.running = 2;
  Look();
  EXPECT_EQ(phase(), "Running");
  EXPECT_EQ(object().StatusText("workers"), "2/2");
  EXPECT_EQ(ConditionOf(object(), "Running"), "True");

  jobs_.End("uid-1", JobState::kSucceeded, false);
  EXPECT_EQ(Look(), Duration(std::chrono::seconds(2))) << "no event tells when its pods are gone";
  EXPECT_EQ(phase(), "Succeeded");
  EXPECT_TRUE(object().has_finalizer()) << "its pods are not gone yet";
  jobs_.End("uid-1", JobState::kSucceeded, true);
  Look();
  EXPECT_FALSE(object().has_finalizer());
  EXPECT_EQ(ConditionOf(object(), "Complete"), "True");
  EXPECT_EQ(ConditionOf(object(), "Failed"), "False");
  EXPECT_EQ(jobs_.attempts, 1);
}

// The job starts between the read of its record and the time at which its events are recognized.
TEST_F(ReconcilerTest, AnEventBeforeTheJobIsKnownIsNotLost) {
  Apply(TestObject());
  jobs_.after_find = [this] {
    if (jobs_.jobs.contains("uid-1") && !reconciler_->KeyOf("test-uid-1"))
      jobs_.jobs["uid-1"].state = JobState::kStarting;
  };
  Look();
  EXPECT_EQ(phase(), "Starting");
}

TEST_F(ReconcilerTest, RepeatedEventsWriteNothing) {
  Apply(TestObject());
  Look();
  const int writes = cluster_.status_writes;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Look(), std::nullopt);
  EXPECT_EQ(cluster_.status_writes, writes);
  EXPECT_EQ(jobs_.attempts, 1);
}

TEST_F(ReconcilerTest, AnOldEventDoesNoHarm) {
  Apply(TestObject());
  const ShoalJob first = object();
  Look();
  reconciler_->Put(first);  // as it was before the finalizer and the status
  reconciler_->Reconcile(kKey);
  EXPECT_EQ(jobs_.attempts, 1);
  EXPECT_EQ(object().finalizers, std::vector<std::string>{kFinalizer});
  EXPECT_EQ(object().StatusText("job"), "test-uid-1");
}

TEST_F(ReconcilerTest, ConflictsAreReadAgain) {
  Apply(TestObject());
  cluster_.failures = {AlreadyExists("modified"), Status::Ok(), AlreadyExists("modified")};
  cluster_.Touch(&cluster_.objects.at(kKey));                 // somebody sets a label
  EXPECT_EQ(reconciler_->Reconcile(kKey).has_value(), true);  // the same version: not the cause
  Look();
  EXPECT_EQ(jobs_.attempts, 1);
  EXPECT_EQ(object().StatusText("job"), "test-uid-1");
}

TEST_F(ReconcilerTest, AnAwayApiServerIsTriedAgainLater) {
  Apply(TestObject());
  cluster_.failures = {Unavailable("away")};
  EXPECT_EQ(Look(), Duration(std::chrono::seconds(1)));
  cluster_.failures = {Unavailable("away")};
  EXPECT_EQ(Look(), Duration(std::chrono::seconds(2)));
  EXPECT_EQ(jobs_.attempts, 0);
  EXPECT_EQ(Look(), std::nullopt);
  EXPECT_EQ(jobs_.attempts, 1);
}

// The operator dies after each of its calls: FakeJobs fails the test if it submits twice.
TEST_F(ReconcilerTest, ARestartAtEveryPointSubmitsOnce) {
  for (size_t die = 0; die < 8; ++die) {
    SCOPED_TRACE(die);
    cluster_.objects.clear();
    jobs_.jobs.clear();
    jobs_.attempts = 0;
    Restart();
    Apply(TestObject());
    cluster_.failures.assign(die, Status::Ok());
    for (int i = 0; i < 20; ++i) cluster_.failures.push_back(Unavailable("the operator is dead"));
    Look();
    cluster_.failures.clear();
    Restart();
    Look();
    EXPECT_EQ(jobs_.attempts, 1);
    EXPECT_EQ(object().StatusText("job"), "test-uid-1");
  }
}

TEST_F(ReconcilerTest, ALostAnswerToTheSubmissionIsFoundAgain) {
  Apply(TestObject());
  jobs_.answer_lost = Unavailable("the store does not answer");
  Look();
  EXPECT_EQ(jobs_.attempts, 1);
  EXPECT_EQ(object().StatusText("job"), "test-uid-1");
}

TEST_F(ReconcilerTest, ARestartAfterTheEndDoesNotSubmitAgain) {
  Apply(TestObject());
  Look();
  jobs_.End("uid-1", JobState::kSucceeded);
  Look();
  jobs_.jobs.clear();  // its record has expired
  Restart();
  Look();
  EXPECT_EQ(jobs_.attempts, 1);
  EXPECT_EQ(phase(), "Succeeded");
}

TEST_F(ReconcilerTest, ARecordThatIsRemovedBeforeTheEndIsAFailure) {
  Apply(TestObject());
  Look();
  jobs_.jobs.clear();
  Look();
  EXPECT_EQ(jobs_.attempts, 1);
  EXPECT_EQ(phase(), "Failed");
  EXPECT_THAT(object().StatusText("reason"), HasSubstr("removed from the server"));
  EXPECT_FALSE(object().has_finalizer());
}

TEST_F(ReconcilerTest, DeletedBeforeItWasSubmitted) {
  ShoalJob made = TestObject();
  made.finalizers = {kFinalizer, "other/finalizer"};
  Apply(made);
  cluster_.Delete(kKey);
  Look();
  EXPECT_EQ(jobs_.attempts, 0);
  EXPECT_EQ(object().finalizers, std::vector<std::string>{"other/finalizer"});
}

TEST_F(ReconcilerTest, DeletedWhileItIsSubmitted) {
  Apply(TestObject());
  cluster_.failures = {Status::Ok(), Status::Ok(), Unavailable("away")};  // after the submission
  Look();
  ASSERT_EQ(jobs_.attempts, 1);
  cluster_.Delete(kKey);
  cluster_.failures.clear();
  Look();
  EXPECT_THAT(jobs_.calls, ElementsAre("stop"));
  EXPECT_EQ(phase(), "Stopping");
  jobs_.End("uid-1", JobState::kCancelled, false);
  Look();
  ASSERT_TRUE(cluster_.objects.contains(kKey)) << "its pods are not gone yet";
  jobs_.End("uid-1", JobState::kCancelled, true);
  Look();
  EXPECT_THAT(cluster_.objects, IsEmpty());
}

TEST_F(ReconcilerTest, AStopIsRepeatedByTheNextOperatorOnly) {
  Apply(TestObject());
  Look();
  cluster_.Delete(kKey);
  Look();
  Look();
  EXPECT_THAT(jobs_.calls, ElementsAre("stop"));
  Restart();
  Look();
  EXPECT_THAT(jobs_.calls, ElementsAre("stop", "stop"));
}

TEST_F(ReconcilerTest, AnObjectOfTheSameNameIsAnotherOne) {
  Apply(TestObject("test", "uid-1"));
  Look();
  cluster_.objects.clear();  // deleted by force, with its finalizer
  reconciler_->Remove(TestObject("test", "uid-1"));
  Apply(TestObject("test", "uid-2"));
  reconciler_->Remove(TestObject("test", "uid-1"));  // the event of the first comes late
  Look();
  EXPECT_EQ(jobs_.attempts, 2);
  EXPECT_EQ(object().StatusText("job"), "test-uid-2");
}

TEST_F(ReconcilerTest, ARefusedSpecSaysSoAndIsTriedWhenItChanges) {
  Apply(TestObject());
  jobs_.submit_error = InvalidArgument("spec.job.roles.worker.command: expected a list");
  EXPECT_EQ(Look(), Duration(std::chrono::seconds(60)));
  EXPECT_EQ(phase(), "Refused");
  EXPECT_EQ(ConditionOf(object(), "Accepted"), "False");
  EXPECT_EQ(ConditionOf(object(), "Accepted", "reason"), "InvalidJob");
  Look();
  EXPECT_EQ(jobs_.attempts, 1);
  EXPECT_EQ(cluster_.announced.size(), 2U) << testing::PrintToString(cluster_.announced);

  jobs_.submit_error = Status::Ok();
  ChangeSpec(R"({"roles":{"worker":{"replicas":1,"command":["true"]}}})");
  Look();
  EXPECT_EQ(jobs_.attempts, 2);
  EXPECT_EQ(phase(), "Pending");
  EXPECT_EQ(ConditionOf(object(), "Accepted"), "True");
}

TEST_F(ReconcilerTest, ARefusalIsTriedAgainAfterAMinute) {
  Apply(TestObject());
  jobs_.submit_error = PermissionDenied("the team's policy forbids this field");
  Look();
  EXPECT_EQ(ConditionOf(object(), "Accepted", "reason"), "NotAllowed");
  clock_.Advance(std::chrono::seconds(59));
  Look();
  EXPECT_EQ(jobs_.attempts, 1);
  jobs_.submit_error = Status::Ok();
  clock_.Advance(std::chrono::seconds(1));
  Look();
  EXPECT_EQ(phase(), "Pending");
  EXPECT_EQ(ConditionOf(object(), "Accepted"), "True");
}

TEST_F(ReconcilerTest, AFullDiskIsNoRefusal) {
  Apply(TestObject());
  jobs_.submit_error = ResourceExhausted("10 MB are free");
  EXPECT_EQ(Look(), Duration(std::chrono::seconds(1)));
  EXPECT_EQ(phase(), "Pending");
  EXPECT_EQ(ConditionOf(object(), "Accepted", "reason"), "NotYet");
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Look(), Duration(std::chrono::seconds(2)));
  EXPECT_EQ(jobs_.attempts, 2);
}

TEST_F(ReconcilerTest, ScalesARoleOnceAndRefusesOtherChanges) {
  Apply(TestObject());
  Look();
  jobs_.jobs["uid-1"].state = JobState::kRunning;
  ChangeSpec(R"({"roles":{"worker":{"replicas":5}}})");
  Look();
  EXPECT_THAT(jobs_.calls, ElementsAre("scale worker 5"));
  EXPECT_EQ(object().observed_generation(), 2);
  EXPECT_EQ(ConditionOf(object(), "SpecApplied"), "True");
  Restart();
  Look();
  EXPECT_THAT(jobs_.calls, ElementsAre("scale worker 5"));

  ChangeSpec(R"({"roles":{"worker":{"replicas":5}},"image":"other"})");
  Look();
  EXPECT_EQ(ConditionOf(object(), "SpecApplied"), "False");
  EXPECT_EQ(ConditionOf(object(), "SpecApplied", "reason"), "Immutable");
  EXPECT_EQ(phase(), "Running");
  EXPECT_THAT(jobs_.calls, ElementsAre("scale worker 5"));

  ChangeSpec(R"({"roles":{"worker":{"replicas":5}}})");  // taken back
  Look();
  EXPECT_EQ(ConditionOf(object(), "SpecApplied"), "True");
}

TEST_F(ReconcilerTest, ARefusedScaleIsACondition) {
  Apply(TestObject());
  Look();
  jobs_.change_error = FailedPrecondition("role worker is not elastic");
  ChangeSpec(R"({"roles":{"worker":{"replicas":5}}})");
  Look();
  Look();
  EXPECT_THAT(jobs_.calls, ElementsAre("scale worker 5"));
  EXPECT_EQ(ConditionOf(object(), "SpecApplied", "reason"), "ChangeRefused");
  EXPECT_EQ(ConditionOf(object(), "SpecApplied", "message"), "role worker is not elastic");
  jobs_.change_error = Unavailable("no answer");
  ChangeSpec(R"({"roles":{"worker":{"replicas":4}}})");
  EXPECT_TRUE(Look().has_value());  // tried again later
}

TEST_F(ReconcilerTest, SuspendHoldsASubmissionAndSuspendsAJob) {
  ShoalJob made = TestObject();
  made.suspend = true;
  Apply(made);
  Look();
  EXPECT_EQ(jobs_.attempts, 0);
  EXPECT_EQ(phase(), "Suspended");
  const std::string same = R"({"roles":{"worker":{"replicas":2}}})";
  ChangeSpec(same);
  Look();
  EXPECT_EQ(jobs_.attempts, 1);
  jobs_.jobs["uid-1"].state = JobState::kRunning;
  ChangeSpec(same, true);
  Look();
  EXPECT_THAT(jobs_.calls, ElementsAre("suspend"));
  jobs_.jobs["uid-1"].state = JobState::kSuspended;
  ChangeSpec(same, false);
  Look();
  EXPECT_THAT(jobs_.calls, ElementsAre("suspend", "resume"));
}

TEST_F(ReconcilerTest, AnObjectOfAnotherServerIsLeftAlone) {
  ShoalJob made = TestObject();
  made.status = {{"server", "store-2"}, {"job", "test-1"}, {"phase", "Running"}};
  Apply(made);
  Look();
  EXPECT_EQ(jobs_.attempts, 0);
  EXPECT_EQ(object().version, "1");
}

// Both have read the object without a claim; the second's write is refused.
TEST_F(ReconcilerTest, OfTwoServersOneClaims) {
  Apply(TestObject());
  FakeJobs other_jobs;
  Reconciler other({&cluster_, &other_jobs, &clock_, "store-2"});
  other.Put(object());
  Look();
  other.Reconcile(kKey);
  EXPECT_EQ(jobs_.attempts, 1);
  EXPECT_EQ(other_jobs.attempts, 0);
  EXPECT_EQ(object().StatusText("server"), kTestServer);
}

TEST_F(ReconcilerTest, AListReplacesWhatAWatchHasMissed) {
  Apply(TestObject());
  Look();
  const ResourceKey other{"elsewhere", "test"};
  ShoalJob second = TestObject("new", "uid-2");
  EXPECT_THAT(reconciler_->Replace("research", {second}), ElementsAre(second.key, kKey));
  EXPECT_EQ(reconciler_->Find(kKey), std::nullopt);
  EXPECT_EQ(reconciler_->Reconcile(kKey), std::nullopt);
  EXPECT_EQ(reconciler_->KeyOf("test-uid-1"), std::nullopt);
  EXPECT_THAT(reconciler_->Replace("elsewhere", {}), IsEmpty());
}

TEST_F(ReconcilerTest, AnUnreadableObjectIsToldOnceAndLeftAlone) {
  ShoalJob made = TestObject();
  made.unreadable = "spec.job is nested more deeply than 32 levels";
  Apply(made);
  EXPECT_EQ(Look(), std::nullopt);
  Look();
  EXPECT_EQ(jobs_.attempts, 0);
  EXPECT_EQ(object().version, "1");
  EXPECT_THAT(cluster_.announced,
              ElementsAre("W Refused: spec.job is nested more deeply than 32 levels"));
}

TEST_F(ReconcilerTest, AStoreThatDoesNotAnswerIsTriedAgain) {
  Apply(TestObject());
  jobs_.find_error = Unavailable("away");
  EXPECT_EQ(Look(), Duration(std::chrono::seconds(1)));
  EXPECT_FALSE(object().has_finalizer());
  jobs_.find_error = Status::Ok();
  EXPECT_EQ(Look(), std::nullopt);
}

}  // namespace
}  // namespace shoal::api
