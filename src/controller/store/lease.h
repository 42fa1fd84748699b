// Leases: one of several servers leads, and the writes of an earlier leader are refused.
//
// A lease expires unless its holder renews it. Each time another holder takes it, its epoch grows.
// A holder cannot know that it has lost the lease (it may have been stopped in between), so the
// store compares the epoch in the transaction of every fenced write.
#pragma once

#include <cstdint>
#include <functional>
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

// The lead under which a supervisor and its runs act. Plain value.
struct Lead {
  int64_t epoch = 0;  // of the lease; 0: there is one server, and nothing is compared
  // Whether the lease is held, by this machine's clock (Leader::leading). Asked before an engine
  // starts something, since a process that was frozen does not know that its lease has ended.
  // Thread-safe; empty: always.
  std::function<bool()> holds = {};

  bool held() const { return !holds || holds(); }
};

}  // namespace shoal::controller
