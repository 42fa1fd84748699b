// Bytes both ways between two streams, as `shoal forward` does for each connection.
#pragma once

namespace shoal::engine {

// Until both directions have ended; the end of one is passed on (shutdown). Blocks; the sockets
// stay the caller's.
void PumpStreams(int a, int b);

// Likewise between a socket and a pair of pipes: `in` into it, what it says to `out`.
void PumpThrough(int socket, int in, int out);

}  // namespace shoal::engine
