// Bytes both ways between two streams, as `shoal forward` does for each connection.
#pragma once

namespace shoal::engine {

// Until both directions have ended; the end of one is passed on (shutdown). Blocks; the sockets
// stay the caller's.
void PumpStreams(int a, int b);

}  // namespace shoal::engine
