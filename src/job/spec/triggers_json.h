// Encoding of a job's triggers, for json.cc.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "job/spec/triggers.h"

namespace shoal::job {

json::object EncodeTriggers(const Triggers& triggers);
// Checks every field.
Status DecodeTriggers(const json::object& object, Triggers* triggers);

}  // namespace shoal::job
