// Horovod's key-value store as a server, and as the process of a job's task: role `rendezvous` of
// framework horovod runs `shoal horovod-rendezvous` (docs/adr/0071).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "net/loop.h"

namespace shoal::rendezvous {

struct StoreServerOptions {
  std::string hosts;               // HorovodStore::Make's
  std::string host = "127.0.0.1";  // numeric, to listen at
  uint16_t port = 0;               // 0: any
};

// Belongs to the loop's thread; alive until destroyed.
class StoreServer {
 public:
  // InvalidArgument for the hosts; FailedPrecondition for a port that is taken.
  static Result<std::unique_ptr<StoreServer>> Start(net::Loop* loop,
                                                    const StoreServerOptions& options);
  virtual ~StoreServer() = default;
  virtual uint16_t port() const = 0;
};

// Serves until SIGTERM or SIGINT.
Status RunStoreServer(const StoreServerOptions& options);

}  // namespace shoal::rendezvous
