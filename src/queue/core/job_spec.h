// What the scheduler needs to know of a job, from its specification.
#pragma once

#include "job/spec/job.h"
#include "queue/core/job.h"

namespace shoal::queue {

// Queue, priority, demand, declared run time (limits.deadline) and checkpoint interval of the job.
// The caller sets id, user, team, engine, order, and a learned run time where none is declared.
//
// One role is counted in Request::unit: the elastic one with the widest range, else the one with
// the most tasks; the others are in Request::base with their `replicas`. Amounts are rounded up.
JobSpec SpecOf(const job::Job& job);

// Resources of one task.
Amounts AmountsOf(const job::Resources& resources);

}  // namespace shoal::queue
