// Commands beside tasks and connections to their ports, through overlapping Slurm steps.
// Used by slurm_engine.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace shoal::engine::slurm {

// A running task and its allocation.
struct ExecTarget {
  std::string program;  // path of shoal
  std::vector<std::string> env;
  int64_t number = 0;  // Slurm's job id
  std::string node;
  std::string job_id;
  std::string role;
  int index = 0;
  std::string group;  // HetGroupOption, in a heterogeneous allocation
};

Result<std::unique_ptr<Execution>> ExecByStep(const ExecTarget& place, const ExecSpec& spec);
Result<UniqueFd> DialByStep(const ExecTarget& place, uint16_t port);

}  // namespace shoal::engine::slurm
