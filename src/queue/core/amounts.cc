#include "queue/core/amounts.h"

#include <cstdio>

namespace shoal::queue {

std::string AmountText(size_t resource, int64_t amount) {
  char buffer[64];
  const auto value = static_cast<double>(amount);
  if (amount >= kUnlimited) {
    std::snprintf(buffer, sizeof buffer, "unlimited %s", kResourceNames[resource]);
  } else if (resource == static_cast<size_t>(Resource::kMemory)) {
    if (amount >= int64_t{1} << 20) {
      std::snprintf(buffer, sizeof buffer, "%.4g GiB memory", value / (1 << 20));
    } else {
      std::snprintf(buffer, sizeof buffer, "%.4g MiB memory", value / (1 << 10));
    }
  } else {
    const bool cpu = resource == static_cast<size_t>(Resource::kCpu);
    std::snprintf(buffer, sizeof buffer, "%.6g %s", value / 1000, cpu ? "CPU" : "GPU");
  }
  return buffer;
}

std::string AmountsText(const Amounts& amounts) {
  std::string text;
  for (size_t r = 0; r < kResources; ++r) {
    if (amounts[r] != 0) text += (text.empty() ? "" : ", ") + AmountText(r, amounts[r]);
  }
  return text.empty() ? "nothing" : text;
}

std::string DistanceText(Millis distance) {
  const auto seconds = static_cast<double>(distance.count()) / 1000;
  char buffer[32];
  if (seconds < 120) {
    std::snprintf(buffer, sizeof buffer, "%.0f s", seconds);
  } else if (seconds < 7200) {
    std::snprintf(buffer, sizeof buffer, "%.0f min", seconds / 60);
  } else if (seconds < 172800) {
    std::snprintf(buffer, sizeof buffer, "%.0f h", seconds / 3600);
  } else {
    std::snprintf(buffer, sizeof buffer, "%.0f days", seconds / 86400);
  }
  return buffer;
}

}  // namespace shoal::queue
