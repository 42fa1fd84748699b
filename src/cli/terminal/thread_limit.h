// Which limit of the system keeps a process from starting one more thread. The kernel says only
// EAGAIN, whatever it was.
#pragma once

#include <cstdint>
#include <span>

namespace shoal::cli {

inline constexpr uint64_t kNoLimit = UINT64_MAX;

// What a process has and may have.
struct ThreadLimits {
  uint64_t address_limit = kNoLimit;  // bytes, `ulimit -v`
  uint64_t address_used = 0;
  uint64_t stack = 0;               // bytes of a new thread
  uint64_t group_limit = kNoLimit;  // pids.max of the control group, the fullest one of its path
  uint64_t group_used = 0;
  uint64_t user_limit = kNoLimit;  // `ulimit -u`, where it applies: it does not to root
};

// Of this process. Allocates nothing.
ThreadLimits ReadThreadLimits();

// Writes one clause with the limit that was reached and its value, or those that it may be, and
// what to do; ends with a NUL. Allocates nothing.
void DescribeThreadLimit(const ThreadLimits& limits, std::span<char> to);

}  // namespace shoal::cli
