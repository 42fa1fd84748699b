// The control group that others put this process into, where that is a task's own: in a container.
// Used by process_tree.cc where no group could be made below it.
#pragma once

#include <cstdint>

namespace shoal::host {

// Set by engines for processes whose whole control group is one task's.
inline constexpr const char* kTaskCgroupVariable = "SHOAL_OWN_GROUP";

// How many processes of our group the kernel has killed because its memory was exhausted. 0 if the
// group is not one task's, or does not tell.
int64_t TaskCgroupOomKills();

}  // namespace shoal::host
