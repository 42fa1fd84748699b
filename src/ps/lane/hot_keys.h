// Which keys a lane is asked for most: a space-saving summary (Metwally et al. 2005) of a random
// sample of all keys, one in 64.
//
// Fed by lane.cc with every row operation, under the lane's lock; read for metrics.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ps/types.h"

namespace shoal::ps {

// Not thread-safe.
class HotKeys {
 public:
  // On average one key in so many is looked at; counts are scaled up by it.
  static constexpr uint32_t kSampleInterval = 64;
  // Keys that are more than 1/kEntries of all are certain to be among them, in a long run.
  static constexpr size_t kEntries = 64;

  struct Entry {
    uint32_t table = 0;
    Key key = 0;
    uint64_t count = 0;  // of samples; at most `error` too many
    uint64_t error = 0;
  };

  void Sample(uint32_t table, std::span<const Key> keys) {
    for (; skip_ < keys.size(); skip_ += NextSkip()) Count(table, keys[skip_]);
    skip_ -= keys.size();
  }
  // Most frequent first; never more samples than were taken for certain.
  std::vector<Entry> Top() const;
  uint64_t samples() const { return samples_; }

 private:
  // 1 .. 2 kSampleInterval - 1, so that no rhythm in the requests hides a key.
  uint32_t NextSkip() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return 1 + static_cast<uint32_t>(state_ >> 33) % (2 * kSampleInterval - 1);
  }
  void Count(uint32_t table, Key key);

  std::array<Entry, kEntries> entries_;
  size_t skip_ = 0;
  uint64_t samples_ = 0;
  uint64_t state_ = 1;
};

}  // namespace shoal::ps
