#include "controller/supervisor/check_queue.h"

#include <algorithm>
#include <string>

namespace shoal::controller {

Status CheckQueue(const std::optional<queue::Policy>& queues, const job::Job& job) {
  if (job.queue == job::Job().queue) return Status::Ok();
  if (!queues)
    return InvalidArgument("queue: got " + job.queue +
                           ", but this server has one queue; an administrator makes others with "
                           "`shoal server --queues FILE`");
  std::string names;
  for (const queue::QueueSpec& queue : queues->queues) {
    const bool leaf = std::ranges::none_of(
        queues->queues, [&](const queue::QueueSpec& other) { return other.parent == queue.name; });
    if (leaf && queue.name == job.queue) return Status::Ok();
    if (leaf) names += (names.empty() ? "" : ", ") + queue.name;
  }
  return InvalidArgument("queue: got " + job.queue + ", expected one of " + names);
}

}  // namespace shoal::controller
