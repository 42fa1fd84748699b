// Waiting for answers without going to sleep at once: the waiter handles them itself as they come.
//
// Used by channel.cc and client_rows.cc. While somebody polls, nobody need be woken, which is where
// most of the time of a short round trip goes otherwise.
#pragma once

#include <memory>
#include <span>

#include "base/clock.h"
#include "ps/transport.h"

namespace shoal::ps {

class LinkPoller {
 public:
  // Polls for `longest` without hearing anything before it gives up.
  explicit LinkPoller(Duration longest = std::chrono::microseconds(100)) : longest_(longest) {}
  // A few looks at all links (null: down), until something was handled. True: see whether what the
  // caller waits for has come, and try again. False: nothing has come for that long, or there is
  // nothing to poll; the links' own threads have taken over and the caller may sleep. Hold no
  // lock that a handler takes.
  bool Turn(std::span<const std::shared_ptr<Link>> links);

 private:
  Polled Look(std::span<const std::shared_ptr<Link>> links);
  const Duration longest_;
  TimePoint since_{};  // nothing has come; epoch: something has
};

}  // namespace shoal::ps
