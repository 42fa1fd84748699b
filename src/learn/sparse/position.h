// Where a worker's threads are, for what goes on after a loss.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::learn::sparse {

struct Position {
  uint64_t epoch = 0;
  uint64_t example = 0;  // trained in this epoch, in the epoch's own order
  uint64_t trained = 0;  // examples over all epochs, counted one by one
  bool operator==(const Position&) const = default;
};

// For ps::Client::SetProgress. Little-endian: u32 version 2, u32 threads (at most 1024), and for
// each thread three u64 in the order above.
std::string EncodePositions(const std::vector<Position>& positions);
// DataLoss if it is anything else.
Result<std::vector<Position>> DecodePositions(std::string_view bytes);

// Examples that all threads have trained over all epochs.
uint64_t TrainedBy(const std::vector<Position>& positions);

}  // namespace shoal::learn::sparse
