// Checks before a training that the model fits into memory. Without the check the kernel would kill
// the process late in the training.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace shoal::learn {

// Memory that this process can still use: free memory of the machine, within the limits of its
// control groups.
uint64_t FreeMemory();
// Address space that it can still map: RLIMIT_AS minus what is mapped. UINT64_MAX without that
// limit.
uint64_t FreeAddressSpace();

// ResourceExhausted if `bytes`, a worker's state and model, exceed `free`. `advice` says how to
// reduce them.
Status CheckMemory(uint64_t bytes, uint64_t free, std::string_view advice);

// The error for std::bad_alloc.
Status OutOfMemory();

}  // namespace shoal::learn
