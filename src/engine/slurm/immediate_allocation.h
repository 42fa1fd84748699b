// An allocation that Slurm gives at once, as it does to whoever waits at a terminal: a batch job is
// looked at once a second at most (ADR 87). Used by slurm_engine.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/process/child_process.h"
#include "engine/slurm/batch_script.h"

namespace shoal::engine::slurm {

// Whether somebody who set `environment` for sbatch would get the same of salloc.
bool CanAllocateImmediately(const std::vector<std::string>& environment);

// What was started for an allocation that is there.
struct ImmediateAllocation {
  int64_t number = 0;  // in Slurm
  Child salloc;        // both live on whatever becomes of us; to be reaped once they have ended
  Child agent;
};

// Starts an salloc and, beside it, the agent for which it is (grant.h). The agent has written the
// allocation's number when this returns; else Unavailable says why, and there is no allocation.
// Blocks for some 10 ms, at most `patience` and 2 s.
Result<ImmediateAllocation> AllocateImmediately(
    const ImmediateRequest& request, const std::vector<std::string>& environment,
    const std::string& job_dir, std::chrono::milliseconds patience = std::chrono::seconds(3));

}  // namespace shoal::engine::slurm
