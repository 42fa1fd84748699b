#include "controller/admission/job_sizes.h"

#include <gtest/gtest.h>

#include "controller/admission/queue_manager.h"

namespace shoal::controller {
namespace {

const WallTime kTime{};

job::Job Elastic(int least, int replicas, int most) {
  job::Job job;
  job::Role role;
  role.name = "worker";
  role.replicas = replicas;
  role.min_replicas = least;
  role.max_replicas = most;
  job.roles = {role};
  return job;
}

Event Note(int replicas, const std::string& by) {
  return ScaledNoteEvent(kTime, "role worker is to have tasks (" + by + ")", "worker", replicas);
}

Event Admitted(const std::string& flavor) {
  Event event = StateEvent(kTime, JobState::kAdmitted, "");
  if (!flavor.empty()) event.body[kFlavorField] = flavor;
  return event;
}

TEST(JobSizes, TheLastNumberHoldsAndAPersonsIsTheMost) {
  const job::Job job = Elastic(1, 2, 8);
  EXPECT_FALSE(SizesOf(job, "worker", {}).ran);
  EXPECT_EQ(SizesOf(job, "worker", {}).size, 2);
  const std::vector<Event> events = {Admitted("a"), Note(5, kByTheQueue), Note(4, "scaled by ann"),
                                     Note(3, kByTheQueue)};
  const SizeHistory history = SizesOf(job, "worker", events);
  EXPECT_TRUE(history.ran);
  EXPECT_EQ(history.admissions, 1);
  EXPECT_EQ(history.size, 3);
  EXPECT_EQ(history.wanted, 4);
  EXPECT_EQ(SizesOf(job, "server", events).wanted, 0);
  EXPECT_EQ(WithSizes(job, events).roles[0].replicas, 3);
  EXPECT_EQ(WithSizes(job, events).roles[0].most(), 8);
}

TEST(JobSizes, TheQueuesOwnNumberAtTheStartIsNoPersons) {
  const job::Job job = Elastic(1, 2, 8);
  Event ours = ResizedEvent(kTime, "worker", 6);
  ours.body[kResizedBy] = "queue";
  EXPECT_EQ(SizesOf(job, "worker", std::vector{ours}).wanted, 0);
  EXPECT_EQ(SizesOf(job, "worker", std::vector{ours}).size, 6);
  EXPECT_EQ(SizesOf(job, "worker", std::vector{ResizedEvent(kTime, "worker", 6)}).wanted, 6);
  // A damaged log does not make a size of nothing.
  Event damaged = ours;
  damaged.body["replicas"] = -5;
  EXPECT_EQ(SizesOf(job, "worker", std::vector{damaged}).size, 2);
}

TEST(JobSizes, AJobThatRanStartsWithItsSize) {
  queue::Request file;
  file.least = 1;
  file.most = 8;
  EXPECT_EQ(BoundsOf(file, {}, true), file);
  const SizeHistory ran{.ran = true, .admissions = 1, .size = 3, .wanted = 0};
  EXPECT_EQ(BoundsOf(file, ran, true).least, 3);
  EXPECT_EQ(BoundsOf(file, ran, true).most, 8);
  EXPECT_EQ(BoundsOf(file, ran, false).least, 1);
  const SizeHistory wanted{.ran = false, .admissions = 0, .size = 2, .wanted = 4};
  EXPECT_EQ(BoundsOf(file, wanted, true).most, 4);
  file.least = 6;
  EXPECT_EQ(BoundsOf(file, wanted, true).least, 4);
  // It runs with more than a person wants, until it has shrunk.
  const SizeHistory larger{.ran = true, .admissions = 1, .size = 7, .wanted = 4};
  EXPECT_EQ(BoundsOf(file, larger, false).most, 7);
}

TEST(JobSizes, TheFlavorIsThatOfTheLastAdmission) {
  EXPECT_EQ(FlavorOf({}), "");
  EXPECT_EQ(FlavorOf(std::vector{Admitted("a"), Admitted("b")}), "b");
  EXPECT_EQ(FlavorOf(std::vector{Admitted("a"), Admitted("")}), "");
}

queue::Policy Queues(const std::vector<std::string>& names) {
  queue::Policy policy = queue::DefaultPolicy({"a"});
  policy.queues.clear();
  for (const std::string& name : names) {
    queue::QueueSpec queue;
    queue.name = name;
    policy.queues.push_back(queue);
  }
  return policy;
}

TEST(QueueManager, JobsThatWouldBeStrandedAreNamed) {
  std::vector<JobRecord> jobs;
  for (int i = 0; i < 7; ++i) {
    JobRecord job;
    job.id = "j" + std::to_string(i);
    job.name = "train";
    job.job = {{"queue", i == 6 ? "blue" : "red"}};
    jobs.push_back(job);
  }
  const queue::Policy both = Queues({"red", "blue"});
  EXPECT_TRUE(CheckStranded(jobs, both, both).ok());
  const Status stranded = CheckStranded(jobs, both, Queues({"blue"}));
  EXPECT_EQ(stranded.code(), Code::kFailedPrecondition);
  EXPECT_NE(stranded.message().find("train (j0, queue 'red'), train (j1, queue 'red')"),
            std::string::npos)
      << stranded.message();
  EXPECT_NE(stranded.message().find(" and 1 more"), std::string::npos) << stranded.message();
  EXPECT_EQ(stranded.message().find("j6"), std::string::npos);
  // A queue that takes no jobs any more strands them too; one that was not there strands nothing.
  queue::Policy nested = both;
  nested.queues[1].parent = "red";
  EXPECT_FALSE(CheckStranded(jobs, both, nested).ok());
  EXPECT_TRUE(CheckStranded(jobs, Queues({"green"}), Queues({"blue"})).ok());
}

}  // namespace
}  // namespace shoal::controller
