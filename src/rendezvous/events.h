// Facts as controllers are told of them. Used by coordinator.cc.
#pragma once

#include <optional>

#include "rendezvous/coordinator_core.h"
#include "rendezvous/fact.h"
#include "rendezvous/types.h"

namespace shoal::rendezvous {

// No event for what concerns nobody else (that a launcher holds a place). `core` names the tasks.
std::optional<JobEvent> EventOf(const Fact& fact, const CoordinatorCore& core);

}  // namespace shoal::rendezvous
