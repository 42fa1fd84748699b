// What the scheduler gets of engines and of operators' modes. Used by job_admitter.cc.
#pragma once

#include <string>
#include <vector>

#include "controller/admission/queue_modes.h"
#include "engine/engine.h"
#include "queue/core/scheduler.h"
#include "queue/policy/policy.h"

namespace shoal::controller {

// One flavor for each engine, and one queue for all jobs: on each engine by priority, then first
// in, first out.
queue::Policy EnginesAsFlavors(const std::vector<std::string>& engines);

// The stricter of the policy's and the operators' modes.
queue::Policy WithModes(queue::Policy policy, const QueueModes& modes);

// CPU may be oversubscribed, since tasks then share it; memory and devices may not.
queue::FlavorMachines MachinesOf(const engine::Capacity& capacity);

}  // namespace shoal::controller
