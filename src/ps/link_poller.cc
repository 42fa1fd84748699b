#include "ps/link_poller.h"

#include <sched.h>

#include "ps/shared_ring.h"

namespace shoal::ps {
namespace {

constexpr int kLooks = 32;

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
  for (int look = 0; look < kLooks; ++look) {
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
