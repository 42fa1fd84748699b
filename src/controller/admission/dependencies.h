// What a job with `after` waits for: other jobs of its team, and groups of jobs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/store/store.h"
#include "job/spec/job.h"

namespace shoal::controller {

// The kind of the records of groups (groups/group_record.h), whose bodies have `state`, `reason`,
// `name` and `team`.
inline constexpr const char* kGroupKind = "group";

// What the conditions of a job come to now. Plain value.
struct DependencyAnswer {
  bool met = false;       // all of them
  std::string never;      // a sentence why one can no longer be met; else empty
  std::string waits_for;  // "prepare-1a2b3c, which is running"; empty if met
};

// Reads the jobs that `after` names by their ids. Errors of the store. Blocks on it.
Result<DependencyAnswer> AskDependencies(Store* store, const std::vector<job::Dependency>& after);

// Replaces names by ids: of a job or group of the team with this id, else of the newest with this
// name. InvalidArgument ("after: got …, expected …") if there is none, or its end already rules
// the condition out. Blocks on the store.
Status ResolveDependencies(Store* store, const std::string& team,
                           std::vector<job::Dependency>* after);

}  // namespace shoal::controller
