// How many bytes of a task's last line are stored with its end.
#pragma once

#include <cstddef>

namespace shoal::rendezvous {

inline constexpr size_t kLastLineBytes = 1000;

}  // namespace shoal::rendezvous
