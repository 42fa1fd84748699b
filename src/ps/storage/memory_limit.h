// The most memory that a server of this process can have. It bounds what dense tables may promise.
//
// Called by ServerContext, once per server.
#pragma once

#include <cstdint>

namespace shoal::ps {

// Bytes: of the machine, or of the control group's limit if that is less.
uint64_t MemoryLimit();

}  // namespace shoal::ps
