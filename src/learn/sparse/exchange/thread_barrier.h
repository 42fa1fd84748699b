// Where a fixed number of threads wait for each other.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace shoal::learn::sparse {

class ThreadBarrier {
 public:
  explicit ThreadBarrier(size_t threads) : threads_(threads) {}

  // Returns when all threads are here. The last one to come first runs `last`, alone.
  template <typename Last>
  void ArriveAndWait(Last&& last) {
    std::unique_lock lock(mu_);
    if (++arrived_ == threads_) {
      last();
      arrived_ = 0;
      ++phase_;
      all_arrived_.notify_all();
      return;
    }
    all_arrived_.wait(lock, [this, turn = phase_] { return turn != phase_; });
  }

 private:
  const size_t threads_;
  std::mutex mu_;
  std::condition_variable all_arrived_;
  size_t arrived_ = 0;  // guarded by mu_
  uint64_t phase_ = 0;  // guarded by mu_
};

}  // namespace shoal::learn::sparse
