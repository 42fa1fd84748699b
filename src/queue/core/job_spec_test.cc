#include "queue/core/job_spec.h"

#include <gtest/gtest.h>

namespace shoal::queue {
namespace {

job::Role Role(const std::string& name, int replicas, job::Resources resources) {
  job::Role role;
  role.name = name;
  role.replicas = replicas;
  role.resources = resources;
  return role;
}

TEST(JobSpec, CountsTheElasticRole) {
  job::Job job;
  job.name = "train";
  job.queue = "vision";
  job.priority = 3;
  job.limits.deadline = std::chrono::hours(4);
  job.checkpoint.every = std::chrono::seconds(30);
  job.roles = {Role("server", 8, {1, 1 << 20, 0}), Role("worker", 4, {0.5, 1 << 20, 1})};
  job.roles[1].min_replicas = 2;
  job.roles[1].max_replicas = 6;
  const JobSpec spec = SpecOf(job);
  EXPECT_EQ(spec.queue, "vision");
  EXPECT_EQ(spec.role, "worker");
  EXPECT_EQ(spec.tasks, 4);
  EXPECT_EQ(spec.request.base, (Amounts{{8000, 8 << 10, 0}}));
  EXPECT_EQ(spec.request.unit, (Amounts{{500, 1 << 10, 1000}}));
  EXPECT_EQ(spec.request.least, 2);
  EXPECT_EQ(spec.request.most, 6);
  EXPECT_EQ(spec.request.largest_task, (Amounts{{1000, 1 << 10, 1000}}));
  EXPECT_EQ(spec.run_time, std::chrono::hours(4));
  EXPECT_EQ(spec.checkpoint, std::chrono::seconds(30));
}

TEST(JobSpec, CountsTheLargestRoleOfAFixedJobAndRoundsUp) {
  job::Job job;
  job.roles = {Role("server", 2, {}), Role("worker", 100'000, {0.0001, 1, 0})};
  const JobSpec spec = SpecOf(job);
  EXPECT_EQ(spec.role, "worker");
  EXPECT_EQ(spec.request.least, 100'000);
  EXPECT_EQ(spec.request.Least(), (Amounts{{100'000, 100'000, 0}}));
  EXPECT_EQ(SpecOf(job::Job()).request.Least(), Amounts());
}

}  // namespace
}  // namespace shoal::queue
