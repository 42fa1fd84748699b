// The few socket calls that both ends of the TCP transport need.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"

namespace shoal::ps {

// A non-blocking listener and the port it got. With SO_REUSEADDR, which is enough beside a
// launcher's lease (bound, not listening) and fails where another socket listens already; without
// SO_REUSEPORT, which would let two servers share a port. The error names host and port.
Result<UniqueFd> ListenTcp(const std::string& host, uint16_t port, uint16_t* bound);
// A connected, non-blocking socket without Nagle's delay and with keepalive (net/tcp_keep_alive.h).
// Unavailable if no host or port answers.
Result<UniqueFd> ConnectTcp(const std::string& address, Duration timeout);
void SetNoDelay(int fd);
// "127.0.0.1:41233" of the other end, for messages.
std::string PeerName(int fd);
// Waits until the socket is readable or writable (poll events); DeadlineExceeded.
Status WaitSocket(int fd, short events, TimePoint deadline);

// Bytes at once, and both without SIGPIPE. -1 with errno EAGAIN: none now.
long SendSome(int fd, const char* bytes, size_t size);
long ReceiveSome(int fd, char* to, size_t size);

}  // namespace shoal::ps
