// SlurmCommands beside tasks and streams to their ports, through steps that overlap with theirs.
// Used by slurm_engine.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace shoal::engine::slurm {

struct ExecTarget {
  std::string program;  // shoal
  std::vector<std::string> env;
  int64_t number = 0;  // of the job in Slurm
  std::string node;
  std::string job_id;
  std::string role;
  int index = 0;
  std::string group;  // HetGroupOption, in a heterogeneous allocation
};

Result<std::unique_ptr<Execution>> ExecByStep(const ExecTarget& place, const ExecSpec& spec);
Result<UniqueFd> DialByStep(const ExecTarget& place, uint16_t port);

}  // namespace shoal::engine::slurm
