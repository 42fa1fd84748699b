// Waiting for answers by polling before sleeping: the waiting thread handles answers as they come.
//
// Used by channel.cc and row_issuer.cc. While a thread polls, no other thread has to be woken;
// waking takes most of the time of a short round trip otherwise.
#pragma once

#include <memory>
#include <span>

#include "base/clock.h"
#include "ps/transport/transport.h"

namespace shoal::ps {

class ConnectionPoller {
 public:
  // Polls for `longest` without hearing anything before it gives up.
  explicit ConnectionPoller(Duration longest = std::chrono::microseconds(100))
      : longest_(longest) {}
  // A few looks at all connections (null: down), until something was handled. True: see whether
  // what the caller waits for has come, and try again. False: nothing has come for that long, or
  // there is nothing to poll; the connections' own threads have taken over and the caller may
  // sleep. Hold no lock that a handler takes.
  bool PollOnce(std::span<const std::shared_ptr<Connection>> connections);

 private:
  PollResult PollEach(std::span<const std::shared_ptr<Connection>> connections);
  const Duration longest_;
  TimePoint since_{};  // nothing has come; epoch: something has
};

}  // namespace shoal::ps
