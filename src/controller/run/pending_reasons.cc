#include "controller/run/pending_reasons.h"

namespace shoal::controller {

std::string PendingReasons::ApplyEvent(const engine::TaskEvent& event) {
  constexpr size_t kMostTold = 32;
  const std::pair key{event.role, event.index};
  if (event.phase != engine::TaskPhase::kStarting) {
    waiting_.erase(key);
    return "";
  }
  if (event.end.reason.empty()) return "";
  waiting_[key] = event.end.reason;
  if (told_.size() >= kMostTold || !told_.insert({event.role, event.end.reason}).second) return "";
  return event.role + " " + std::to_string(event.index) + " waits: " + event.end.reason;
}

std::string PendingReasons::Explain(const std::string& reason) const {
  if (waiting_.empty()) return reason;
  const auto& [task, why] = *waiting_.begin();
  // The failure's reason may already contain it.
  if (reason.find(why) != std::string::npos) return reason;
  return reason + "; " + task.first + " " + std::to_string(task.second) + " waited: " + why;
}

}  // namespace shoal::controller
