#include "controller/run/coordinator_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shoal::controller {

void CoordinatorStatus::ApplyEvent(const engine::TaskEvent& event) {
  if (event.stopped) return;
  starting_ = event.phase == engine::TaskPhase::kStarting;
  running_ = event.phase == engine::TaskPhase::kRunning;
}

bool CoordinatorStatus::IsRunning(const std::function<void(const std::string&)>& note) {
  if (running_ && !std::exchange(noted_, true))
    note("the job's coordinator does not answer, though its process lives; waiting for it");
  return running_;
}

std::string DescribeCoordinatorEnd(const engine::TaskEnd& end) {
  if (!end.reason.empty()) return end.reason;
  return end.signal != 0 ? fmt::format("was killed by signal {}", end.signal)
                         : fmt::format("exited with code {}", end.exit_code);
}

Duration CoordinatorTimeout(const job::Limits& limits, const engine::Engine& engine) {
  // With an engine that queues jobs itself, only its reports decide about the coordinator's
  // absence.
  constexpr Duration kQueuePatience = std::chrono::hours(24 * 365);
  if (!engine.SharesJobDirectory()) {
    // Bounded: where tasks are placed one by one, other tasks of the job may hold the resources
    // that the coordinator needs.
    return std::max(limits.coordinator_timeout, limits.gather);
  }
  return engine.HasOwnQueue() ? kQueuePatience : Duration(limits.coordinator_timeout);
}

}  // namespace shoal::controller
