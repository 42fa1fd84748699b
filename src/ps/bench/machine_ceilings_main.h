// The throughput and latency of the machine's kernel for programs that only move bytes: the
// ceilings of ps_speed that need sockets or sleep.
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace shoal::ps {

// GB/s of one thread that writes `bytes` at a time to a loopback connection while another reads up
// to 64 KB at a time and adds them to floats, with calls that block, for about `seconds`.
double PlainTcp(size_t bytes, double seconds);

// Microseconds until 4 KB have gone over a loopback connection and 64 bytes have come back, to a
// thread that polls for them: the median. `pause` 0: from one that polls as well, else from one
// that has slept in the kernel for so long.
double PlainTcpRoundTrip(Duration pause);

}  // namespace shoal::ps
