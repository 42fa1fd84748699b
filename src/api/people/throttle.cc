#include "api/people/throttle.h"

#include <algorithm>

#include "base/mutex.h"

namespace shoal::api {

Duration Throttle::CountFailure(const std::string& peer) {
  constexpr Duration kFirstDelay = std::chrono::milliseconds(100);
  constexpr int kMaxDoublings = 6;
  const MutexLock lock(mu_);
  const TimePoint now = clock_->Now();
  auto found = peers_.find(peer);
  if (found == peers_.end()) {
    if (peers_.size() >= kMaxPeers) {
      peers_.erase(order_.front());
      order_.pop_front();
    }
    order_.push_back(peer);
    found = peers_.emplace(peer, Peer{0, now, std::prev(order_.end())}).first;
  } else {
    order_.splice(order_.end(), order_, found->second.place);
  }
  Peer& one = found->second;
  if (now - one.last > kMemory) one.failures = 0;
  one.last = now;
  ++one.failures;
  if (one.failures <= kFreeFailures) return Duration(0);
  const int doublings = std::min(one.failures - kFreeFailures - 1, kMaxDoublings);
  return std::min(kMaxDelay, kFirstDelay * (1 << doublings));
}

size_t Throttle::peers() const {
  const MutexLock lock(mu_);
  return peers_.size();
}

}  // namespace shoal::api
