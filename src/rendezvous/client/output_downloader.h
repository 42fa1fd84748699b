// The controller's side of forwarding outputs in no-shared-filesystem mode (output_relay.h):
// receives from the coordinator what tasks on other hosts wrote to $SHOAL_OUTPUT, over a connection
// of its own, and stores it where `shoal outputs` reads.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "net/event_loop.h"
#include "rendezvous/client/transfer_options.h"

namespace shoal::rendezvous {

// Belongs to the loop's thread.
class OutputDownloader {
 public:
  // `on_end` is called once, from the loop, after Finish: OK if everything that the coordinator has
  // is stored here, else why that is unknown. It may destroy this object.
  static std::unique_ptr<OutputDownloader> Start(net::Loop* loop, const TransferOptions& line,
                                                 std::function<void(const Status&)> on_end);
  virtual ~OutputDownloader() = default;
  // No more outputs will be written: call on_end when all are stored.
  virtual void Finish() = 0;
};

}  // namespace shoal::rendezvous
