// How much of a task's last line is kept with its end: what a program says last often ends with
// what to do about it.
#pragma once

#include <cstddef>

namespace shoal::rendezvous {

inline constexpr size_t kLastLineBytes = 1000;

}  // namespace shoal::rendezvous
