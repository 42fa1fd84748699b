#include "base/clock.h"

#include <fmt/format.h>

#include <ctime>

#include "base/mutex.h"

namespace shoal {

TimePoint RealClock::Now() const { return std::chrono::steady_clock::now(); }

WallTime RealClock::Wall() const {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

const RealClock* RealClock::Get() {
  static const RealClock clock;
  return &clock;
}

TimePoint FakeClock::Now() const {
  const MutexLock lock(mu_);
  return TimePoint(elapsed_);
}

WallTime FakeClock::Wall() const {
  const MutexLock lock(mu_);
  return WallTime(std::chrono::duration_cast<std::chrono::microseconds>(elapsed_));
}

void FakeClock::Advance(Duration by) {
  const MutexLock lock(mu_);
  elapsed_ += by;
}

std::string FormatWall(WallTime time) {
  const int64_t micros = time.time_since_epoch().count();
  const time_t seconds = static_cast<time_t>(micros / 1'000'000);
  std::tm civil{};
  gmtime_r(&seconds, &civil);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", civil.tm_year + 1900,
                     civil.tm_mon + 1, civil.tm_mday, civil.tm_hour, civil.tm_min, civil.tm_sec,
                     micros % 1'000'000);
}

std::string FormatDuration(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 48 * 3600) return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {:02} h", whole / 86400, whole % 86400 / 3600);
}

}  // namespace shoal
