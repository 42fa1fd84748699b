// Where the threads of a worker are in their shards, and from where a worker that was lost goes on.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::learn::word2vec {

// One thread's place: the next item that it will train, in which epoch, with what randomness.
struct Position {
  uint64_t epoch = 0;
  uint64_t item = 0;
  uint64_t random = 0;
  uint64_t words = 0;  // trained so far, over all epochs
  bool operator==(const Position&) const = default;
};

// For ps::Client::SetProgress. Little-endian: u32 version 1, u32 threads, and for each thread four
// u64 in the order above.
std::string EncodePositions(const std::vector<Position>& positions);
// DataLoss if it is anything else.
Result<std::vector<Position>> DecodePositions(std::string_view bytes);

// Which positions are safe: all that a worker trained before them has reached the servers. A thread
// sweeps its part of the rows again and again; what all threads had done at some moment is with the
// servers when every thread has completed a whole sweep since. Thread-safe.
class Positions {
 public:
  explicit Positions(std::vector<Position> at);

  // Thread `thread` is at `at`; `sweeps` of its sweeps are complete. The positions that have become
  // safe by this, if any.
  std::optional<std::vector<Position>> Update(size_t thread, const Position& at, uint64_t sweeps);
  // Now, safe or not.
  std::vector<Position> current() const;

 private:
  mutable std::mutex mu_;
  std::vector<Position> now_;  // guarded by mu_, as all below
  std::vector<uint64_t> sweeps_;
  std::vector<Position> pending_;  // safe when every thread has reached needed_
  std::vector<uint64_t> needed_;
};

}  // namespace shoal::learn::word2vec
