#include "rendezvous/launcher/activity_tracker.h"

#include <cmath>

namespace shoal::rendezvous {

void ActivityTracker::Sample(TimePoint now, double cpu_seconds, int64_t network_bytes) {
  const double seconds = std::chrono::duration<double>(now - sampled_).count();
  const double cpu = std::abs(cpu_seconds - cpu_seconds_);
  const auto bytes = static_cast<double>(network_bytes - network_bytes_);
  if (cpu >= kLeastCpuShare * seconds || bytes >= kLeastBytesPerSecond * seconds)
    RecordActivity(now);
  sampled_ = now;
  cpu_seconds_ = cpu_seconds;
  network_bytes_ = network_bytes;
}

}  // namespace shoal::rendezvous
