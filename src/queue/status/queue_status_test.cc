#include "queue/status/queue_status.h"

#include <gtest/gtest.h>

namespace shoal::queue {
namespace {

constexpr Millis kNow{1000};

QueueSpec Queue(const std::string& name, const std::string& parent, int64_t gpus) {
  QueueSpec queue;
  queue.name = name;
  queue.parent = parent;
  if (gpus > 0) queue.quota["a"][2].nominal = gpus * 1000;
  return queue;
}

class QueueStatusTest : public ::testing::Test {
 protected:
  QueueStatusTest() {
    Policy policy = DefaultPolicy({"a"});
    policy.queues = {Queue("root", "", 0), Queue("red", "root", 4), Queue("blue", "root", 4)};
    for (QueueSpec& queue : policy.queues) queue.preempt_within = PreemptRule::kNever;
    policy.default_queue = "red";
    scheduler_ = std::make_unique<Scheduler>(policy);
  }
  void Submit(const std::string& id, const std::string& queue, const std::string& team,
              int64_t gpus, int32_t priority = 0) {
    JobSpec spec;
    spec.id = id;
    spec.name = "name-" + id;
    spec.queue = queue;
    spec.team = team;
    spec.user = "user-" + team;
    spec.order = ++order_;
    spec.priority = priority;
    spec.request.unit = {{0, 0, gpus * 1000}};
    ASSERT_TRUE(scheduler_->Submit(std::move(spec), kNow).ok());
  }
  const QueueStatus& Of(const std::string& name, const Viewer& viewer,
                        const ReportLimits& limits = {}) {
    report_ = ReportQueues(*scheduler_, viewer, limits);
    for (const QueueStatus& queue : report_.queues) {
      if (queue.name == name) return queue;
    }
    ADD_FAILURE() << "no queue " << name;
    return report_.queues.front();
  }

  std::unique_ptr<Scheduler> scheduler_;
  QueueReport report_;
  int64_t order_ = 0;
};

TEST_F(QueueStatusTest, BorrowedAndLentQuotaAreShown) {
  Submit("big", "red", "r", 6);
  scheduler_->Decide(kNow);
  const Viewer all{.all = true};
  const QueueStatus red = Of("red", all);
  EXPECT_EQ(red.depth, 1);
  EXPECT_EQ(red.running, 1);
  ASSERT_EQ(red.flavors.size(), 1U);
  ASSERT_EQ(red.flavors[0].resources.size(), 1U);
  const ResourceStatus gpu = red.flavors[0].resources[0];
  EXPECT_EQ(gpu.resource, 2U);
  EXPECT_EQ(gpu.nominal, 4000);
  EXPECT_EQ(gpu.used, 6000);
  EXPECT_EQ(gpu.borrowed, 2000);
  EXPECT_EQ(gpu.lent, 0);
  const ResourceStatus lends = Of("blue", all).flavors[0].resources[0];
  EXPECT_EQ(lends.used, 0);
  EXPECT_EQ(lends.lent, 2000);
  const ResourceStatus tree = Of("root", all).flavors[0].resources[0];
  EXPECT_EQ(tree.nominal, 8000);
  EXPECT_EQ(tree.used, 6000);
  EXPECT_EQ(tree.borrowed, 0);
  EXPECT_EQ(report_.queues.front().name, "root");
  EXPECT_EQ(report_.queues.front().running, 1);
}

TEST_F(QueueStatusTest, JobsOfOtherTeamsHaveNoNames) {
  Submit("one", "red", "r", 8);
  scheduler_->Decide(kNow);
  Submit("two", "red", "b", 6);
  Submit("three", "red", "r", 1, 5);
  scheduler_->Decide(kNow);
  const QueueStatus seen = Of("red", {.teams = {"b"}});
  EXPECT_EQ(seen.waiting, 2);
  ASSERT_EQ(seen.jobs.size(), 2U);
  EXPECT_EQ(seen.jobs[0].id, "");  // the important one is first
  EXPECT_EQ(seen.jobs[0].name, "");
  EXPECT_EQ(seen.jobs[0].user, "");
  EXPECT_EQ(seen.jobs[0].team, "r");
  EXPECT_EQ(seen.jobs[1].id, "two");
  for (const WaitingJobStatus& job : seen.jobs) {
    EXPECT_EQ(job.reason.find("one"), std::string::npos) << job.reason;
    EXPECT_EQ(job.reason.find("three"), std::string::npos) << job.reason;
    EXPECT_NE(job.reason.find("a job of team r"), std::string::npos) << job.reason;
  }
  EXPECT_NE(Of("red", {.all = true}).jobs[0].reason.find("name-one (one)"), std::string::npos);
  EXPECT_EQ(Of("root", {}).waiting, 2);
}

TEST_F(QueueStatusTest, ListsAreBounded) {
  for (int i = 0; i < 50; ++i) Submit("j" + std::to_string(i), i % 2 ? "red" : "blue", "r", 8);
  scheduler_->Decide(kNow);
  const QueueStatus red = Of("red", {.all = true}, {.jobs_of_queue = 10, .jobs = 15});
  EXPECT_EQ(red.jobs.size(), 10U);
  EXPECT_EQ(red.waiting, 25);
  const QueueStatus blue = Of("blue", {.all = true}, {.jobs_of_queue = 10, .jobs = 15});
  EXPECT_EQ(blue.jobs.size(), 5U);
}

TEST_F(QueueStatusTest, ModesHaveNames) {
  for (const QueueMode mode : {QueueMode::kOpen, QueueMode::kHold, QueueMode::kDrain})
    EXPECT_EQ(ParseQueueMode(NameOf(mode)), mode);
  EXPECT_EQ(ParseQueueMode("shut"), std::nullopt);
}

}  // namespace
}  // namespace shoal::queue
