// The queues of a server, for the command `shoal queue`.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"

namespace shoal::controller {

struct NewRun;

// Thread-safe; calls block.
class Queues {
 public:
  virtual ~Queues() = default;
  // The reply of listQueues (docs/rest.md): the tree of queues, and who waits for what.
  virtual Result<json::object> Describe() = 0;
  // `mode`: open, hold or drain. NotFound; PermissionDenied; FailedPrecondition for a queue that
  // cannot be resumed.
  virtual Status SetMode(const std::string& queue, const std::string& mode) = 0;
  // The reply of tryJob (docs/rest.md): what would become of a job now. Nothing is uploaded.
  virtual Result<json::object> Try(const NewRun& run) = 0;
  // Reads the server's policy file again. FailedPrecondition if jobs would be stranded.
  virtual Status Reload() = 0;
};

}  // namespace shoal::controller
