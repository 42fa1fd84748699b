// The TCP side of a server: one thread per lane, each with an epoll set of its own connections.
//
// Lane 0's thread accepts a connection and authenticates it; the connection then moves to the
// thread of the lane that its hello names. Requests are applied straight from the receive buffer;
// answers are built straight in the send buffer. A connection that sends invalid bytes is closed
// with one log line.
#pragma once

#include <memory>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "ps/server/server_core.h"

namespace shoal::ps {

class TcpLane;

// Start and destruction from one thread; the lanes' threads run in between.
class TcpServer {
 public:
  // Listens where the core's options say; with an empty listen_host it only keeps the time (Tick).
  // The core must outlive it.
  static Result<std::unique_ptr<TcpServer>> Start(ServerCore* core);
  // Closes all connections and ends the threads.
  ~TcpServer();

  // 0: does not listen.
  uint16_t port() const { return port_; }

 private:
  TcpServer() = default;
  uint16_t port_ = 0;
  std::vector<std::unique_ptr<TcpLane>> lanes_;
};

}  // namespace shoal::ps
