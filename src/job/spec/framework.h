// What a framework means by the names of roles and of environment variables.
//
// presets.cc fills in by it what a job file leaves out, validate_framework.cc checks by it, and the
// dialects (src/framework) number a job's tasks by it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "job/spec/job.h"

namespace shoal::job {

// The roles whose processes the frameworks that count (pytorch, horovod, rabit, jax, paddle) number
// through, in that order: `master` or `chief`, then `worker`; in a job that has none of these, all
// roles that follow nobody, in the file's order.
std::vector<std::string> RankedRoles(const Job& job);

// True for frameworks whose processes are numbered through. Those of mpi are too, but by mpirun.
bool CountsRanks(Framework framework);

// True for frameworks whose processes cannot go on when one of them was lost and came back, so that
// all start again together: those that count ranks, and ps-lite (docs/adr/0051).
bool RestartsAllTasks(Framework framework);

// True for a variable that the framework's dialect sets by the cluster, so that a job file may not.
// Those that are only defaults (OMP_NUM_THREADS, PS_HEARTBEAT_TIMEOUT, …) are not among them.
bool IsSetByFramework(Framework framework, std::string_view variable);

// The role's port that the framework's own programs listen on; empty if it needs none.
std::string_view PresetPort(Framework framework, std::string_view role);

}  // namespace shoal::job
