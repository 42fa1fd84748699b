// The control group of a container that runs exactly one task. Used by process_tree.cc if it cannot
// create a group below it.
#pragma once

#include <cstdint>

namespace shoal::host {

// Set by engines for processes whose control group belongs to a single task.
inline constexpr const char* kTaskCgroupVariable = "SHOAL_OWN_GROUP";

// Number of processes in this group that the kernel killed for lack of memory. 0 if the group is
// not a single task's, or the count is unavailable.
int64_t TaskCgroupOomKills();

}  // namespace shoal::host
