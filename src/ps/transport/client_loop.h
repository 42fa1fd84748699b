// The receiving thread of a client's TCP and shared-memory connections: handles what arrives while
// no caller polls, and sends what could not be sent at once.
//
// Made by tcp_transport.cc, one per transport; fed by client_connection.cc.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"
#include "base/status.h"

namespace shoal::ps {

class ClientConnection;

class ClientLoop {
 public:
  static Result<std::shared_ptr<ClientLoop>> Start();
  ~ClientLoop();
  // Ends the thread. Idempotent.
  void Stop();

  // All below: thread-safe.
  void Add(const std::shared_ptr<ClientConnection>& stream, int fd, uint32_t events);
  void Watch(ClientConnection* stream, int fd, uint32_t events);
  void Remove(ClientConnection* stream, int fd);
  // A caller has begun to poll: from now on checks every few milliseconds whether it still does.
  void WatchPollers();

 private:
  void Run();
  void Arm();
  void Serve(ClientConnection* stream, uint32_t events);
  std::vector<std::shared_ptr<ClientConnection>> All();
  // True while any connection is polled.
  bool CheckPollers();

  UniqueFd epoll_;
  UniqueFd wake_;   // eventfd: stop
  UniqueFd timer_;  // when to check the polled connections next
  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> watching_pollers_{false};
  Mutex mu_;
  std::map<ClientConnection*, std::shared_ptr<ClientConnection>> streams_ GUARDED_BY(mu_);
};

}  // namespace shoal::ps
