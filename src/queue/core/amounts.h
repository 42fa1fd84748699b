// Amounts of resources. The arithmetic of the whole room: quotas, usage and demands are such
// vectors of whole numbers, so that sums are exact.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace shoal::queue {

// A point in time or a duration. The epoch is the caller's; all values of one scheduler share it.
using Millis = std::chrono::milliseconds;

// Later than everything: the expected end of a job without a known run time.
inline constexpr Millis kForever = Millis(std::numeric_limits<int64_t>::max() / 4);

enum class Resource : uint8_t { kCpu, kMemory, kGpu };
inline constexpr size_t kResources = 3;
inline constexpr const char* kResourceNames[kResources] = {"cpu", "memory", "gpu"};

// More than any real amount; sums of a few thousand of them do not overflow.
inline constexpr int64_t kUnlimited = int64_t{1} << 50;

// CPU in thousandths of a core, memory in KiB, GPUs in thousandths of a device.
struct Amounts {
  std::array<int64_t, kResources> at{};

  int64_t& operator[](size_t resource) { return at[resource]; }
  int64_t operator[](size_t resource) const { return at[resource]; }
  bool operator==(const Amounts&) const = default;

  Amounts& operator+=(const Amounts& other) {
    for (size_t r = 0; r < kResources; ++r) at[r] += other.at[r];
    return *this;
  }
  Amounts& operator-=(const Amounts& other) {
    for (size_t r = 0; r < kResources; ++r) at[r] -= other.at[r];
    return *this;
  }
  friend Amounts operator+(Amounts a, const Amounts& b) { return a += b; }
  friend Amounts operator-(Amounts a, const Amounts& b) { return a -= b; }
  friend Amounts operator*(Amounts a, int64_t factor) {
    for (int64_t& value : a.at) value *= factor;
    return a;
  }

  bool IsZero() const { return *this == Amounts{}; }
  // True if no component exceeds that of `limit`. A zero component always fits, even into a
  // negative limit: a job that asks for no GPU is not held back by GPUs that are overcommitted.
  bool FitsIn(const Amounts& limit) const {
    bool fits = true;
    for (size_t r = 0; r < kResources; ++r) fits &= at[r] <= std::max<int64_t>(limit.at[r], 0);
    return fits;
  }
};

inline Amounts Min(const Amounts& a, const Amounts& b) {
  Amounts out;
  for (size_t r = 0; r < kResources; ++r) out[r] = std::min(a[r], b[r]);
  return out;
}
inline Amounts Max(const Amounts& a, const Amounts& b) {
  Amounts out;
  for (size_t r = 0; r < kResources; ++r) out[r] = std::max(a[r], b[r]);
  return out;
}
inline constexpr Amounts kNoLimit = {{kUnlimited, kUnlimited, kUnlimited}};

// "90 s", "12 min", "5 h", "3 days".
std::string DistanceText(Millis distance);
// "1.5 CPU", "2 GiB memory", "1 GPU".
std::string AmountText(size_t resource, int64_t amount);
// "2 CPU, 4 GiB memory, 1 GPU"; zero components are omitted; "nothing".
std::string AmountsText(const Amounts& amounts);

}  // namespace shoal::queue
