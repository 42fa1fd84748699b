// What exchanges cost a worker: the part of its time that it does not train because of them, and
// the bytes of rows that it sends and gets.
//
// training.h adds every exchange; progress reports and model.json show the sums.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"

namespace shoal::learn::sparse {

struct ExchangeCost {
  uint64_t exchanges = 0;
  double exchange = 0;           // part of the time that passed in exchanges, 0 to 1
  double waited = 0;             // part of the time that passed waiting for the worker's turn
  double bytes_per_example = 0;  // both ways
};

// Thread-safe.
class ExchangeMeter {
 public:
  explicit ExchangeMeter(TimePoint begun) : begun_(begun) {}

  // An exchange has ended that took so long, without what was trained in it, after a wait.
  void Add(Duration exchange, Duration waited) {
    const MutexLock lock(mu_);
    ++exchanges_;
    exchange_ += exchange;
    waited_ += waited;
  }

  // Until now, of a worker that has trained so many examples and moved so many bytes since.
  ExchangeCost Read(TimePoint now, uint64_t examples, uint64_t bytes) const {
    const MutexLock lock(mu_);
    ExchangeCost cost;
    cost.exchanges = exchanges_;
    if (now > begun_) {
      const auto all = static_cast<double>((now - begun_).count());
      cost.exchange = static_cast<double>(exchange_.count()) / all;
      cost.waited = static_cast<double>(waited_.count()) / all;
    }
    if (examples > 0)
      cost.bytes_per_example = static_cast<double>(bytes) / static_cast<double>(examples);
    return cost;
  }

 private:
  const TimePoint begun_;
  mutable Mutex mu_;
  uint64_t exchanges_ GUARDED_BY(mu_) = 0;  // as the next two
  Duration exchange_{};
  Duration waited_{};
};

}  // namespace shoal::learn::sparse
