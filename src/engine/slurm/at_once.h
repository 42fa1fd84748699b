// An allocation that Slurm gives at once, as it does to whoever waits at a terminal: a batch job is
// looked at once a second at most (ADR 87). Used by slurm_engine.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::engine::slurm {

// Whether somebody who set `environment` for sbatch would get the same of salloc.
bool MayAskAtOnce(const std::vector<std::string>& environment);

// Runs an salloc (AtOnceWords) whose agent then lives on this machine, whatever becomes of us. Its
// number in Slurm, once the agent has written it; else Unavailable says why, and there is no
// allocation. Blocks for some 15 ms, at most `patience` and 2 s.
Result<int64_t> AllocateAtOnce(const std::vector<std::string>& words,
                               const std::vector<std::string>& environment,
                               const std::string& job_dir,
                               std::chrono::milliseconds patience = std::chrono::seconds(3));

}  // namespace shoal::engine::slurm
