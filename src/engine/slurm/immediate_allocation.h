// Allocation by `salloc --immediate`. It takes milliseconds, while Slurm schedules batch jobs at
// most once a second (ADR 87). Used by slurm_engine.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/process/child_process.h"
#include "engine/slurm/batch_script.h"

namespace shoal::engine::slurm {

// Whether salloc gives the same allocation as sbatch with these SBATCH_ variables.
bool CanAllocateImmediately(const std::vector<std::string>& environment);

// An allocation that was granted, and the processes started for it.
struct ImmediateAllocation {
  int64_t number = 0;  // Slurm's job id
  Child salloc;        // both outlive this process; the caller reaps them when they have ended
  Child agent;
};

// Starts salloc and the agent (grant.h). On success the agent has recorded the allocation's number.
// Unavailable with the reason if there is no allocation. Blocks for about 10 ms, at most `patience`
// plus 2 s.
Result<ImmediateAllocation> AllocateImmediately(
    const ImmediateRequest& request, const std::vector<std::string>& environment,
    const std::string& job_dir, std::chrono::milliseconds patience = std::chrono::seconds(3));

}  // namespace shoal::engine::slurm
