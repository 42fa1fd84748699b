// Time as something handed in: rooms that wait or measure take a Clock, so that tests turn its
// hands themselves.
#pragma once

#include <chrono>
#include <string>

#include "base/mutex.h"

namespace shoal {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic; never goes back, not comparable between machines.
  virtual TimePoint Now() const = 0;
  // Civil time, for records that people read.
  virtual WallTime Wall() const = 0;
};

class RealClock final : public Clock {
 public:
  TimePoint Now() const override;
  WallTime Wall() const override;
  // The one that binaries use.
  static const RealClock* Get();
};

// Stands still until Advance is called.
class FakeClock final : public Clock {
 public:
  TimePoint Now() const override;
  WallTime Wall() const override;
  void Advance(Duration by);

 private:
  mutable Mutex mu_;
  Duration elapsed_{std::chrono::seconds(1)};
};

// "2026-11-21T05:04:21.123456Z" (RFC 3339, microseconds).
std::string FormatWall(WallTime time);
// "3 h 12 min", "4.2 s", "80 ms": for people.
std::string FormatDuration(Duration duration);

}  // namespace shoal
