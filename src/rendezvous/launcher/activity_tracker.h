// Whether a task moves: when it last printed or reported something, computed or used the network.
// A pure count under somebody else's clock; attempt.cc keeps one, the coordinator is told its age
// with each heartbeat (coordinator_core, limits.stall).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace shoal::rendezvous {

// Less than these, on the average between two samples, is no movement: programs that wait for ever
// still look at the clock and greet each other (docs/adr/0072).
inline constexpr double kLeastCpuShare = 0.01;          // of one core
inline constexpr double kLeastBytesPerSecond = 1024.0;  // received and acknowledged

// How often a launcher is to look at a task of a job with this limit, 0 for none: so that a stall
// is seen at most a twentieth late, and a beat of the program's own falls into every look.
inline std::chrono::milliseconds WatchInterval(std::chrono::milliseconds stall) {
  using std::chrono::milliseconds;
  if (stall.count() == 0) return milliseconds(0);
  return std::clamp(stall / 20, milliseconds(1'000), milliseconds(30'000));
}

// Not thread-safe.
class ActivityTracker {
 public:
  explicit ActivityTracker(TimePoint now) : last_activity_(now), sampled_(now) {}

  // It printed or reported something.
  void RecordActivity(TimePoint now) { last_activity_ = std::max(last_activity_, now); }
  // What its processes have used since their start. A sum that shrinks is of processes that have
  // ended, which is movement too.
  void Sample(TimePoint now, double cpu_seconds, int64_t network_bytes);
  // For how long it has stood still.
  Duration still(TimePoint now) const { return now - last_activity_; }

 private:
  TimePoint last_activity_;
  TimePoint sampled_;
  double cpu_seconds_ = 0;
  int64_t network_bytes_ = 0;
};

}  // namespace shoal::rendezvous
