// Job fields that an engine ignores. Commands report them before a job starts, so no accepted field
// is silently without effect (docs/adr/0188). Used by `shoal run`, `plan` and `schedule`.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "job/spec/job.h"

namespace shoal::controller {

struct UnusedField {
  std::string path;      // "container.pids"; several are separated by commas
  std::string sentence;  // "container.pids: …": the reason and an alternative
};

// InvalidArgument for fields that no engine supports and that would change which data is trained or
// where it is stored: `store`, and a table unless a server gets the job, whose catalogue knows it.
Status RefuseUnusedFields(const job::Job& job, bool to_server);

// The fields that the engine ignores and that differ from their defaults, in a fixed order. Empty
// for an unknown engine.
std::vector<UnusedField> UnusedFields(const job::Job& job, const std::string& engine);

}  // namespace shoal::controller
