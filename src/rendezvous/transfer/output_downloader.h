// The controller's side of the outputs' second leg: takes what tasks on other hosts wrote to
// $SHOAL_OUTPUT from the coordinator (output_relay.h), where the two share no directory, over a
// line of its own, and keeps it where `shoal outputs` looks.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "net/event_loop.h"
#include "rendezvous/transfer/transfer_options.h"

namespace shoal::rendezvous {

// Belongs to the loop's thread.
class OutputDownloader {
 public:
  // `on_end` comes once, from the loop, after Finish: OK when all that the coordinator has is here,
  // else why that is not known. It may destroy this object.
  static std::unique_ptr<OutputDownloader> Start(net::Loop* loop, const TransferOptions& line,
                                                 std::function<void(const Status&)> on_end);
  virtual ~OutputDownloader() = default;
  // Nothing more is being written: tell when all is here.
  virtual void Finish() = 0;
};

}  // namespace shoal::rendezvous
