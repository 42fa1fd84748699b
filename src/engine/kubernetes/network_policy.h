// NetworkPolicies of a job whose team is separate: its pods accept connections from pods of the
// same team in the same namespace only. Pure. Used by kubernetes_engine.cc and describe_objects.cc.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "engine/kubernetes/objects.h"

namespace shoal::engine::kubernetes {

// Label of the pods of such a job, with its team. A server sets it by the team's policy
// (docs/policies.md); it is what asks for the policies.
inline constexpr const char* kTeamLabel = "shoal.dev/team";

// The objects, which the job's coordinator owns; none if the job does not have the label. The
// coordinator's port stays open for all, since the controller reaches it through the API server,
// whose address a policy cannot name; connections to it need the job's token.
std::vector<json::object> NetworkPolicyObjects(const DesiredJob& job, const Owner& owner);

}  // namespace shoal::engine::kubernetes
