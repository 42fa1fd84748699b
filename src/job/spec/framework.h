// Conventions of each framework: names of roles, environment variables and ports.
//
// presets.cc derives defaults from them, validate_framework.cc checks a job against them, and
// src/framework numbers a job's tasks by them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "job/spec/job.h"

namespace shoal::job {

// Roles whose processes get ranks, in rank order, for the frameworks that assign ranks (pytorch,
// horovod, rabit, jax, paddle): `master` or `chief`, then `worker`. A job without these roles:
// every role without `follows`, in the file's order.
std::vector<std::string> RankedRoles(const Job& job);

// True for frameworks whose processes get ranks from Shoal. mpi is not one of them: mpirun assigns
// its ranks.
bool CountsRanks(Framework framework);

// True for frameworks that cannot continue after one process was replaced, so all processes restart
// together: those that assign ranks, and ps-lite (docs/adr/0051).
bool RestartsAllTasks(Framework framework);

// True for a variable that Shoal sets for the framework from the cluster's description; a job file
// must not set it. Variables with mere defaults (OMP_NUM_THREADS, PS_HEARTBEAT_TIMEOUT, …) are not
// included.
bool IsSetByFramework(Framework framework, std::string_view variable);

// Name of the port that the framework's own programs listen on in this role; empty if they need
// none.
std::string_view PresetPort(Framework framework, std::string_view role);

}  // namespace shoal::job
