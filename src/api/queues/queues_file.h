// The policy of the queues in its file: read at the start of a leading server, and again on demand.
#pragma once

#include <filesystem>
#include <functional>

#include "base/status.h"
#include "controller/admission/queue_manager.h"
#include "queue/policy/policy.h"

namespace shoal::api {

// Errors of the file system; InvalidArgument with line and column of each error of the file.
Result<queue::Policy> ReadQueues(const std::filesystem::path& file);

// Puts the file's policy in force. Blocks on the file; `done` is called once, on this thread or on
// the supervisor's. FailedPrecondition without a file, or if jobs would be stranded.
void ReloadQueues(const std::filesystem::path& file, controller::QueueManager* queues,
                  std::function<void(const Status&)> done);

}  // namespace shoal::api
