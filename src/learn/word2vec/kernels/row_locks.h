// Locks for the moments in which several threads add into the same frequent row.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace shoal::learn::word2vec {

// Short spin locks, many rows to one. Training itself takes none of them: only merges of threads'
// copies and answers of the servers do.
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
