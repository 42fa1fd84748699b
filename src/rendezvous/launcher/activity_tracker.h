// Tracks when a task was last active: printed or reported something, computed or used the network.
// Pure; the caller passes the time. attempt.cc keeps one, and each heartbeat tells the coordinator
// for how long the task has been idle (lifecycle/stall_detector.h, limits.stall).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace shoal::rendezvous {

// Usage below these rates, averaged between two samples, counts as idle: programs that wait for
// ever still poll clocks and send keep-alives (docs/adr/0072).
inline constexpr double kLeastCpuShare = 0.01;          // of one core
inline constexpr double kLeastBytesPerSecond = 1024.0;  // received and acknowledged

// Not thread-safe.
class ActivityTracker {
 public:
  explicit ActivityTracker(TimePoint now) : last_activity_(now), sampled_(now) {}

  // The task printed or reported something.
  void RecordActivity(TimePoint now) { last_activity_ = std::max(last_activity_, now); }
  // Resource use of its processes since their start. A sum that shrinks means that processes have
  // ended, which is activity too.
  void Sample(TimePoint now, double cpu_seconds, int64_t network_bytes);
  // For how long the task has been idle.
  Duration still(TimePoint now) const { return now - last_activity_; }

 private:
  TimePoint last_activity_;
  TimePoint sampled_;
  double cpu_seconds_ = 0;
  int64_t network_bytes_ = 0;
};

}  // namespace shoal::rendezvous
