// Where a fixed number of threads wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/mutex.h"

namespace shoal::learn::sparse {

class ThreadBarrier {
 public:
  explicit ThreadBarrier(size_t threads) : threads_(threads) {}

  // Returns when all threads are here. The last one to come first runs `last`, alone.
  template <typename Last>
  void ArriveAndWait(Last&& last) {
    MutexLock lock(mu_);
    if (++arrived_ == threads_) {
      last();
      arrived_ = 0;
      ++phase_;
      all_arrived_.notify_all();
      return;
    }
    all_arrived_.wait(lock, [this, turn = phase_]() REQUIRES(mu_) { return turn != phase_; });
  }

 private:
  const size_t threads_;
  Mutex mu_;
  CondVar all_arrived_;
  size_t arrived_ GUARDED_BY(mu_) = 0;
  uint64_t phase_ GUARDED_BY(mu_) = 0;
};

}  // namespace shoal::learn::sparse
