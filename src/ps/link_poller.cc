#include "ps/link_poller.h"

#include <sched.h>

#include <algorithm>

#include "ps/shared_ring.h"

namespace shoal::ps {
namespace {

// Before the processor is offered to others. A look at shared memory costs nanoseconds; one at a
// socket is a system call, and many of them keep from a server that shares this processor, or is
// being woken, what it needs.
constexpr int kLooks = 32, kLooksAtSockets = 2;

bool AnySocket(std::span<const std::shared_ptr<Link>> links) {
  return std::any_of(links.begin(), links.end(),
                     [](const auto& link) { return link != nullptr && link->SavesBytes(); });
}

}  // namespace

Polled LinkPoller::Look(std::span<const std::shared_ptr<Link>> links) {
  Polled best = Polled::kNever;
  for (const auto& link : links) {
    const Polled polled = link == nullptr ? Polled::kNever : link->Poll();
    if (polled == Polled::kSome) return polled;
    if (polled == Polled::kNothing) best = polled;
  }
  return best;
}

bool LinkPoller::Turn(std::span<const std::shared_ptr<Link>> links) {
  const int looks = AnySocket(links) ? kLooksAtSockets : kLooks;
  for (int look = 0; look < looks; ++look) {
    const Polled polled = Look(links);
    if (polled == Polled::kNever) return false;
    if (polled == Polled::kSome) {
      since_ = {};
      return true;
    }
    SpinPause();
  }
  const TimePoint now = RealClock::Get()->Now();
  if (since_ == TimePoint{}) since_ = now;
  if (now - since_ < longest_) {
    ::sched_yield();  // to whoever shares the processor: perhaps the server
    return true;
  }
  since_ = {};
  for (const auto& link : links) {
    if (link != nullptr) link->Rest();
  }
  return false;
}

}  // namespace shoal::ps
