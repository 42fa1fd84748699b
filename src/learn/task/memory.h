// Whether a model fits into memory, asked before it is trained: after the training it would be too
// late, and the kernel's answer is a signal.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace shoal::learn {

// Bytes that this process may still write to: what the machine has free, and the limits of its
// control groups.
uint64_t FreeMemory();
// Bytes that it may still map, written to or not: RLIMIT_AS less what it has mapped. UINT64_MAX
// without that limit.
uint64_t FreeAddressSpace();

// ResourceExhausted if a worker's state and model take more than `free` bytes. `advice` says how
// they become smaller.
Status CheckMemory(uint64_t bytes, uint64_t free, std::string_view advice);

// What an std::bad_alloc is told as.
Status OutOfMemory();

}  // namespace shoal::learn
