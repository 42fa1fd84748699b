// Locks for updates of frequent rows by several threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace shoal::learn::word2vec {

// Spin locks, each shared by many rows, held briefly. Only merges of copies and answers of servers
// take them; training itself does not.
class RowLocks {
 public:
  class Guard {
   public:
    Guard(RowLocks& locks, int table, uint64_t row)
        : flag_(locks.flags_[(row * 2 + static_cast<uint64_t>(table)) % kLocks]) {
      while (flag_.test_and_set(std::memory_order_acquire)) {
        while (flag_.test(std::memory_order_relaxed)) __builtin_ia32_pause();
      }
    }
    ~Guard() { flag_.clear(std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic_flag& flag_;
  };

 private:
  static constexpr size_t kLocks = 4096;
  std::array<std::atomic_flag, kLocks> flags_{};
};

}  // namespace shoal::learn::word2vec
