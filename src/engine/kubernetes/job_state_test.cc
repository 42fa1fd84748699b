// Pods of a cluster to events of tasks.
#include "engine/kubernetes/job_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/kubernetes/test_kube_job.h"

namespace shoal::engine::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

json::object Pod(int index, int failures, const std::string& uid, json::object status) {
  return {
      {"metadata",
       {{"name", "p-" + uid},
        {"uid", uid},
        {"labels",
         {{kJobLabel, "text-0a1b2c"},
          {kRoleLabel, "worker"},
          {kJobNameLabel, "shoal-text-0a1b2c-worker"}}},
        {"annotations",
         {{kCompletionIndex, std::to_string(index)}, {kFailureCount, std::to_string(failures)}}}}},
      {"spec", {{"nodeName", "node1"}}},
      {"status", std::move(status)}};
}
json::object Running() {
  return {{"phase", "Running"},
          {"containerStatuses",
           json::array{{{"name", "task"}, {"state", {{"running", json::object()}}}}}}};
}
json::object Ended(int code, const std::string& reason = "Error", const std::string& message = "") {
  return {
      {"phase", code == 0 ? "Succeeded" : "Failed"},
      {"containerStatuses",
       json::array{
           {{"name", "task"},
            {"state",
             {{"terminated", {{"exitCode", code}, {"reason", reason}, {"message", message}}}}}}}}};
}
PodView View(json::object object) {
  auto list = DecodePods({{"items", json::array{std::move(object)}}});
  EXPECT_TRUE(list.ok() && list->items.size() == 1);
  return list.ok() && !list->items.empty() ? list->items[0] : PodView();
}

class JobStateTest : public testing::Test {
 protected:
  JobStateTest() : state_("text-0a1b2c", RestartRules()) {
    const DesiredJob job = SomeJob(1);
    const JobChanges changes = Plan(job);
    state_.SetJobs({Made(changes.make[0]), Made(changes.make[1])});
    state_.SetDesired(job, changes, &events_);
    events_.clear();
  }
  void UpdatePod(json::object pod) {
    state_.UpdatePod(
        View(std::move(pod)), now_, [] { return std::string("last words\n"); }, &events_);
  }
  std::vector<TaskPhase> Phases() {
    std::vector<TaskPhase> phases;
    for (const TaskEvent& event : events_) phases.push_back(event.phase);
    return phases;
  }
  JobState state_;
  std::vector<TaskEvent> events_;
  TimePoint now_ = TimePoint(std::chrono::hours(1));
};

// It ends with 0, so that the cluster does not make it again where it was, and is lost all the
// same.
TEST_F(JobStateTest, WhoLeavesItsHostSaysSoInItsLastWords) {
  UpdatePod(Pod(0, 0, "a", Running()));
  EXPECT_FALSE(state_.KnownTasks().at({"worker", 0}).left);
  UpdatePod(Pod(0, 0, "a", Ended(0, "Completed", "78")));
  EXPECT_EQ(events_.back().phase, TaskPhase::kLost);
  EXPECT_EQ(events_.back().end.exit_code, job::kExitHostExcluded);
  EXPECT_TRUE(state_.KnownTasks().at({"worker", 0}).left);
  EXPECT_FALSE(state_.KnownTasks().at({"worker", 0}).over);
  DesiredJob job = SomeJob(1);
  job.tasks[1].excluded_hosts = {"node1"};
  const JobChanges changes = Plan(job, {Made(Plan(SomeJob(1)).make[1])}, state_.KnownTasks());
  ASSERT_THAT(changes.make, SizeIs(2));  // the coordinator's is not among what is there
  state_.SetDesired(job, changes, &events_);
  EXPECT_EQ(events_.back().phase, TaskPhase::kStarting);
  EXPECT_EQ(events_.back().incarnation, 1);
  EXPECT_FALSE(state_.KnownTasks().at({"worker", 0}).left);
}

TEST_F(JobStateTest, FromStartToEnd) {
  UpdatePod(Pod(0, 0, "a", {{"phase", "Pending"}}));
  UpdatePod(Pod(0, 0, "a", Running()));
  UpdatePod(Pod(0, 0, "a", Running()));
  UpdatePod(Pod(0, 0, "a", Ended(0)));
  EXPECT_THAT(Phases(), ElementsAre(TaskPhase::kRunning, TaskPhase::kEnded));
  EXPECT_EQ(events_.back().end.exit_code, 0);
}

TEST_F(JobStateTest, AnEndThatCameAtOnceIsToldInOrder) {
  UpdatePod(Pod(0, 0, "a", Ended(137)));
  UpdatePod(Pod(0, 1, "b", Running()));
  EXPECT_THAT(Phases(), ElementsAre(TaskPhase::kRunning, TaskPhase::kLost, TaskPhase::kStarting,
                                    TaskPhase::kRunning));
  EXPECT_EQ(events_[1].end.signal, 9);
  EXPECT_EQ(events_[3].incarnation, 1);
}

TEST_F(JobStateTest, ASilentNodesTaskIsLostWhenAnotherStandsInItsPlace) {
  UpdatePod(Pod(0, 0, "a", Running()));
  json::object lost = Running();
  lost["conditions"] = json::array{{{"type", "DisruptionTarget"},
                                    {"status", "True"},
                                    {"reason", "DeletionByTaintManager"},
                                    {"message", "Taint manager: deleting due to NoExecute taint"}}};
  json::object pod = Pod(0, 0, "a", lost);
  pod["metadata"].get_object()["deletionTimestamp"] = "2026-11-22T14:00:00Z";
  UpdatePod(pod);
  UpdatePod(Pod(0, 1, "b", {{"phase", "Pending"}}));
  EXPECT_THAT(Phases(), ElementsAre(TaskPhase::kRunning, TaskPhase::kLost, TaskPhase::kStarting));
  EXPECT_THAT(events_[1].end.reason, HasSubstr("went with its node node1"));
  // The node is back, and its kubelet tells the old pod's end.
  pod["status"] = Ended(137);
  UpdatePod(pod);
  EXPECT_THAT(events_, SizeIs(3));
}

// A node says by turns what the registry has answered and that it will ask again.
TEST_F(JobStateTest, TheRegistrysAnswerIsToldOnce) {
  const auto see = [&](const char* reason, const char* message) {
    const json::object waiting{{"waiting", {{"reason", reason}, {"message", message}}}};
    const json::object task{{"name", "task"}, {"image", "none:1"}, {"state", waiting}};
    UpdatePod(Pod(0, 0, "a", {{"phase", "Pending"}, {"containerStatuses", json::array{task}}}));
  };
  for (int turn = 0; turn < 2; ++turn) {
    see("ErrImagePull", "none:1: not found");
    see("ImagePullBackOff", "Back-off pulling image");
  }
  ASSERT_THAT(events_, SizeIs(1));
  EXPECT_THAT(events_[0].end.reason, HasSubstr("(ErrImagePull: none:1: not found)"));
}

TEST_F(JobStateTest, ReasonsBecomeSentences) {
  json::object waiting{
      {"phase", "Pending"},
      {"containerStatuses",
       json::array{
           {{"name", "task"},
            {"image", "none:1"},
            {"state", {{"waiting", {{"reason", "ImagePullBackOff"}, {"message", "Back-off"}}}}}}}}};
  UpdatePod(Pod(0, 0, "a", waiting));
  UpdatePod(Pod(0, 0, "a", waiting));
  ASSERT_THAT(Phases(), ElementsAre(TaskPhase::kStarting));
  EXPECT_THAT(events_[0].end.reason, HasSubstr("the image none:1 cannot be had (ImagePullBackOff"));
  UpdatePod(Pod(
      0, 0, "a",
      {{"phase", "Pending"},
       {"conditions",
        json::array{{{"type", "PodScheduled"},
                     {"status", "False"},
                     {"reason", "Unschedulable"},
                     {"message", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."}}}}}));
  EXPECT_THAT(events_.back().end.reason, HasSubstr("Insufficient nvidia.com/gpu"));
  UpdatePod(Pod(0, 0, "a", Ended(137, "OOMKilled")));
  EXPECT_TRUE(events_.back().end.out_of_memory);
  EXPECT_THAT(events_.back().end.reason, HasSubstr("more memory"));
}

TEST_F(JobStateTest, NoSuchProgramIsRefusedAtOnce) {
  UpdatePod(
      Pod(0, 0, "a",
          Ended(128, "StartError", "exec: \"/no/such/program\": stat: no such file or directory")));
  ASSERT_THAT(Phases(), ElementsAre(TaskPhase::kRefused));
  EXPECT_THAT(events_[0].end.reason, HasSubstr("no such program"));
}

TEST_F(JobStateTest, FiveDeathsAreGivenUpWithTheLastWords) {
  for (int i = 0; i < 5; ++i) UpdatePod(Pod(0, i, "u" + std::to_string(i), Ended(3)));
  EXPECT_EQ(events_.back().phase, TaskPhase::kRefused);
  EXPECT_EQ(events_.back().incarnation, 4);
  EXPECT_THAT(events_.back().end.reason, HasSubstr("said: last words"));
}

TEST_F(JobStateTest, QuotaIsToldOfWhatHasNoPod) {
  state_.SetCreateErrors({{"shoal-text-0a1b2c-worker", "exceeded quota"}}, &events_);
  ASSERT_THAT(Phases(), ElementsAre(TaskPhase::kStarting));
  EXPECT_EQ(events_[0].end.reason, "exceeded quota");
}

}  // namespace
}  // namespace shoal::engine::kubernetes
