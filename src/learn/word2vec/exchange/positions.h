// The positions of a worker's threads in their shards, from which a restarted worker continues.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace shoal::learn::word2vec {

// The position of one thread: the next item to train, its epoch, and the random state.
struct Position {
  uint64_t epoch = 0;
  uint64_t item = 0;
  uint64_t random = 0;
  uint64_t words = 0;  // words trained so far, over all epochs
  bool operator==(const Position&) const = default;
};

// The encoding for ps::Client::SetProgress. Little-endian: u32 version 1, u32 threads, and for each
// thread four u64 in the order above.
std::string EncodePositions(const std::vector<Position>& positions);
// DataLoss for malformed bytes.
Result<std::vector<Position>> DecodePositions(std::string_view bytes);

// Determines safe positions: those before which everything that the worker trained has reached the
// servers. Each thread sweeps over its part of the rows repeatedly; the state at some moment is on
// the servers when every thread has completed a whole sweep since. Thread-safe.
class Positions {
 public:
  explicit Positions(std::vector<Position> at);

  // Records that `thread` is at `at` and has completed `sweeps` sweeps. Returns the positions that
  // have become safe, if any.
  std::optional<std::vector<Position>> Update(size_t thread, const Position& at, uint64_t sweeps);
  // The current positions, safe or not.
  std::vector<Position> current() const;

 private:
  mutable Mutex mu_;
  std::vector<Position> now_ GUARDED_BY(mu_);  // as all below
  std::vector<uint64_t> sweeps_;
  std::vector<Position> pending_;  // safe when every thread has reached needed_
  std::vector<uint64_t> needed_;
};

}  // namespace shoal::learn::word2vec
