// A job for tests of what is planned and known of its objects.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/kubernetes/decode.h"
#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/plan_jobs.h"

namespace shoal::engine::kubernetes {

inline DesiredTask Launcher(const std::string& role, int index) {
  DesiredTask task;
  task.role = role;
  task.index = index;
  task.argv = {"/opt/shoal",    "task",
               "--index",       kIndexPlaceholder,
               "--incarnation", kIncarnationPlaceholder,
               "--coordinator", kCoordinatorPlaceholder,
               "--pay",         "$HOME"};
  return task;
}

inline DesiredJob SomeJob(int workers = 2) {
  DesiredJob job;
  job.job_id = "text-0a1b2c";
  DesiredTask coordinator;
  coordinator.role = "coordinator";
  coordinator.argv = {"/opt/shoal", "coordinator", "--listen", "0.0.0.0:{port}"};
  job.tasks.push_back(coordinator);
  for (int i = 0; i < workers; ++i) job.tasks.push_back(Launcher("worker", i));
  job.bootstrap_files = {{"token", "secret-token"}};
  return job;
}

inline const ObjectOptions kOptions{.program = "/opt/shoal", .launcher_image = "launcher:1"};

inline JobChanges Plan(const DesiredJob& job, const std::vector<JobView>& there = {},
                       const std::map<TaskKey, KnownTask>& known = {}) {
  return PlanJobs(kOptions, job, "team", there, known);
}

// As the cluster has it once it was made.
inline JobView Made(const RoleJob& role) {
  Owner owner;
  json::object object = JobObject(kOptions, SomeJob(), role, owner, false);
  object.at("metadata").get_object()["uid"] = "uid-" + role.name;
  auto view = DecodeJob(object);
  EXPECT_TRUE(view.ok()) << view.status().message();
  return view.value_or(JobView());
}

}  // namespace shoal::engine::kubernetes
