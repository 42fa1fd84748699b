// What the gate of this process's job gives: `gate://DATA/OBJECT`, for the job's programs.
#pragma once

#include <memory>

#include "data/objects/http_transport.h"
#include "data/objects/object.h"

namespace shoal::data {

// Read only. `context` names the gate by kGateVariable. FailedPrecondition outside of a job with a
// gate. While the gate prepares its objects, Open and List wait; a gate that is away is waited for
// about a minute.
Result<std::unique_ptr<ObjectStore>> MakeGateStore(ObjectContext context);

}  // namespace shoal::data
