#include "ps/transport/connection_poller.h"

#include <sched.h>

#include <algorithm>

#include "ps/transport/shared_ring.h"

namespace shoal::ps {
namespace {

// Before the processor is offered to others. A look at shared memory costs nanoseconds; one at a
// socket is a system call, and many of them keep from a server that shares this processor, or is
// being woken, what it needs.
constexpr int kLooks = 32, kLooksAtSockets = 2;

bool AnySocket(std::span<const std::shared_ptr<Connection>> connections) {
  return std::any_of(connections.begin(), connections.end(), [](const auto& connection) {
    return connection != nullptr && connection->SavesBytes();
  });
}

}  // namespace

PollResult ConnectionPoller::PollEach(std::span<const std::shared_ptr<Connection>> connections) {
  PollResult best = PollResult::kNever;
  for (const auto& connection : connections) {
    const PollResult polled = connection == nullptr ? PollResult::kNever : connection->Poll();
    if (polled == PollResult::kSome) return polled;
    if (polled == PollResult::kNothing) best = polled;
  }
  return best;
}

bool ConnectionPoller::PollOnce(std::span<const std::shared_ptr<Connection>> connections) {
  const int looks = AnySocket(connections) ? kLooksAtSockets : kLooks;
  for (int look = 0; look < looks; ++look) {
    const PollResult polled = PollEach(connections);
    if (polled == PollResult::kNever) return false;
    if (polled == PollResult::kSome) {
      since_ = {};
      return true;
    }
    SpinPause();
  }
  const TimePoint now = RealClock::Get()->Now();
  if (since_ == TimePoint{}) since_ = now;
  if (now - since_ < longest_) {
    ::sched_yield();  // to the thread that shares the processor: perhaps the server
    return true;
  }
  since_ = {};
  for (const auto& connection : connections) {
    if (connection != nullptr) connection->StopPolling();
  }
  return false;
}

}  // namespace shoal::ps
