// Where a fixed number of threads wait for each other.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace shoal::learn::sparse {

class Meeting {
 public:
  explicit Meeting(size_t threads) : threads_(threads) {}

  // Returns when all threads are here. The last one to come first runs `last`, alone.
  template <typename Last>
  void Meet(Last&& last) {
    std::unique_lock lock(mu_);
    if (++here_ == threads_) {
      last();
      here_ = 0;
      ++turn_;
      all_here_.notify_all();
      return;
    }
    all_here_.wait(lock, [this, turn = turn_] { return turn != turn_; });
  }

 private:
  const size_t threads_;
  std::mutex mu_;
  std::condition_variable all_here_;
  size_t here_ = 0;    // guarded by mu_
  uint64_t turn_ = 0;  // guarded by mu_
};

}  // namespace shoal::learn::sparse
