// Copies bytes in both directions between two streams, as `shoal forward` does per connection.
#pragma once

namespace shoal::engine {

// Copies until both directions have ended; the end of one direction is passed on by shutdown.
// Blocks. The caller keeps ownership of the sockets.
void PumpStreams(int a, int b);

// Copies between a socket and a pair of pipes: from `in` to the socket, from the socket to `out`.
void PumpThrough(int socket, int in, int out);

}  // namespace shoal::engine
