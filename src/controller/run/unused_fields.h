// Fields of a job that an engine does nothing with. Commands tell them before a job starts, so that
// a field that is accepted is never without effect unsaid (docs/adr/0188). Used by src/cli for
// `shoal run`, `plan` and `schedule`.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "job/spec/job.h"
#include "job/text/field_locations.h"

namespace shoal::controller {

struct UnusedField {
  std::string path;      // "container.pids"; several with commas between
  std::string sentence;  // "container.pids: …": why, and what to do instead
};

// InvalidArgument for what no engine does anything with, and whose loss would change which data is
// trained or where it is kept: `store`, and how `data` is split and read outside framework shoal.
// `places`: which fields were given.
Status RefuseUnusedFields(const job::Job& job, const job::FieldLocations& places);

// In a fixed order; none for an engine that is not known here. Only fields that differ from what
// they are when left out.
std::vector<UnusedField> UnusedFields(const job::Job& job, const std::string& engine);

}  // namespace shoal::controller
