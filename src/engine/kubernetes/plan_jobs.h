// Decides which Kubernetes Jobs to create, resize and delete so that exactly the desired tasks
// exist. Pure; used by kubernetes_engine.cc and describe_objects.cc.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/kubernetes/objects.h"
#include "engine/tasks/task_state.h"

namespace shoal::engine::kubernetes {

// A task that exists or existed.
struct KnownTask {
  int next = 0;       // number of its next incarnation
  bool over = false;  // ended or given up: it may be replaced
  bool left = false;  // ended with job::kExitHostExcluded
};

// A role that grows or shrinks.
struct Resize {
  std::string name;
  int count = 0;
  std::map<int, int> bases;
};

// The difference between the desired tasks and the existing Jobs.
struct JobChanges {
  std::vector<RoleJob> make;  // the coordinator's first
  std::vector<Resize> resize;
  std::vector<std::string> remove;   // names of Jobs
  std::vector<TaskKey> kept_longer;  // not desired, but their Job cannot be shrunk without them
};

// `there`: the job's existing Jobs. Running tasks are not touched: a Job's template never changes,
// a role grows and shrinks at its highest indexes, and a task that fits into no Job gets one of its
// own. O(tasks).
JobChanges PlanJobs(const ObjectOptions& options, const DesiredJob& job,
                    const std::string& name_space, const std::vector<JobView>& there,
                    const std::map<TaskKey, KnownTask>& known);

}  // namespace shoal::engine::kubernetes
