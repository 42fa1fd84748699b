// Horovod's key-value store as an HTTP server, and as the process of a task: role `rendezvous` of
// framework horovod runs `shoal horovod-rendezvous` (docs/adr/0071).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "net/event_loop.h"

namespace shoal::rendezvous {

struct HorovodStoreServerOptions {
  std::string hosts;               // HorovodStore::Make's
  std::string host = "127.0.0.1";  // numeric, to listen at
  uint16_t port = 0;               // 0: any
};

// Serves until destroyed. Belongs to the loop's thread.
class HorovodStoreServer {
 public:
  // InvalidArgument for the hosts; FailedPrecondition for a port that is taken.
  static Result<std::unique_ptr<HorovodStoreServer>> Start(
      net::Loop* loop, const HorovodStoreServerOptions& options);
  virtual ~HorovodStoreServer() = default;
  virtual uint16_t port() const = 0;
};

// Serves until SIGTERM or SIGINT.
Status RunHorovodStoreServer(const HorovodStoreServerOptions& options);

}  // namespace shoal::rendezvous
