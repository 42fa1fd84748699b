// Slows peers whose requests fail authentication: each failure makes the next negative answer to
// the same peer later. A valid token is answered at once, so that one guesser behind a shared
// address does not lock others out.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/mutex.h"

namespace shoal::api {

// Thread-safe; remembers at most kMaxPeers peers, and forgets those that failed longest ago.
class Throttle {
 public:
  static constexpr size_t kMaxPeers = 10'000;
  static constexpr int kFreeFailures = 5;
  static constexpr Duration kMaxDelay = std::chrono::seconds(5);
  // After this time without a failure a peer starts anew.
  static constexpr Duration kMemory = std::chrono::minutes(1);

  explicit Throttle(const Clock* clock) : clock_(clock) {}

  // Counts a failure; returns how long the answer is to be held back. `peer`: an address without
  // its port.
  Duration CountFailure(const std::string& peer);
  size_t peers() const;

 private:
  struct Peer {
    int failures = 0;
    TimePoint last{};
    std::list<std::string>::iterator place;
  };
  const Clock* const clock_;
  mutable Mutex mu_;
  std::unordered_map<std::string, Peer> peers_;
  std::list<std::string> order_;  // the one that failed last at the end
};

}  // namespace shoal::api
