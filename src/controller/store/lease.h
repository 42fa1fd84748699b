// Leases: one of several servers leads, and the writes of an earlier leader are refused.
//
// A lease expires unless its holder renews it. Each time another holder takes it, its epoch grows.
// A holder cannot know that it has lost the lease (it may have been stopped in between), so the
// store compares the epoch in the transaction of every fenced write.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace shoal::controller {

// Names the lease that the leading server holds.
inline constexpr const char* kLeaderLease = "leader";

// What a write proves: that its author still holds the lease.
struct Fence {
  std::string lease;  // empty: no check
  int64_t epoch = 0;
};

struct Lease {
  bool acquired = false;  // by the caller; false: `holder` holds it
  std::string name;
  std::string holder;
  int64_t epoch = 0;
  // Time left, by the store's clock. The holder counts it from before its call, on its own
  // monotonic clock, and stops acting when it has passed.
  Duration remaining{};

  Fence fence() const { return {name, epoch}; }
};

}  // namespace shoal::controller
