// How much memory a server of this process can have at the most, before it promises rows that are
// never going to fit.
//
// Called by server_core.cc, once a server.
#pragma once

#include <cstdint>

namespace shoal::ps {

// Bytes: of the machine, or of the control group's limit if that is less.
uint64_t MemoryLimit();

}  // namespace shoal::ps
