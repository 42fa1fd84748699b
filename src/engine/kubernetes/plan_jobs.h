// Which Jobs of the cluster are to be made, changed and deleted so that exactly the wanted tasks
// exist. Pure; used by kubernetes_engine.cc and describe.cc.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/kubernetes/objects.h"
#include "engine/tasks/task_state.h"

namespace shoal::engine::kubernetes {

// What is known of a task that exists or did.
struct KnownTask {
  int next = 0;       // the number of its next incarnation
  bool over = false;  // ended, or given up: what it was may be replaced
  bool left = false;  // … because of its host: it ended with job::kExitHostExcluded
};

// A role that grows or shrinks.
struct Resize {
  std::string name;
  int count = 0;
  std::map<int, int> bases;
};

struct JobChanges {
  std::vector<RoleJob> make;  // the coordinator's first
  std::vector<Resize> resize;
  std::vector<std::string> remove;   // names of Jobs
  std::vector<TaskKey> kept_longer;  // not wanted, but of a Job that cannot do without them
};

// `there`: the job's Jobs now. What runs is left alone: a Job's template never changes, a role
// grows and shrinks at its end, and what fits into none gets a Job of its own. O(tasks).
JobChanges PlanJobs(const ObjectOptions& options, const DesiredJob& job,
                    const std::string& name_space, const std::vector<JobView>& there,
                    const std::map<TaskKey, KnownTask>& known);

}  // namespace shoal::engine::kubernetes
