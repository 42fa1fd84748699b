// Which server, and which of its lanes, owns a key: keys → virtual shards → owners.
//
// Built alike by clients (from what servers say in their welcome) and by servers. The shard of a
// key never changes; the owner of a shard is a versioned table, so that shards can move.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "ps/storage/initializer.h"
#include "ps/types.h"

namespace shoal::ps {

struct Owner {
  uint16_t server = 0;
  uint16_t lane = 0;
  bool operator==(const Owner&) const = default;
};

class Partition {
 public:
  Partition() = default;
  // `lanes[s]`: threads of server s. shards: a power of two.
  Partition(uint32_t shards, const std::vector<uint32_t>& lanes)
      : shard_bits_(static_cast<uint32_t>(std::countr_zero(shards))) {
    const auto servers = static_cast<uint32_t>(lanes.size());
    for (uint32_t shard = 0; shard < shards; ++shard) {
      const uint32_t server = shard % servers;
      const uint32_t lane = shard / servers % lanes[server];
      owners_.push_back({static_cast<uint16_t>(server), static_cast<uint16_t>(lane)});
    }
  }

  // Dense rows are dealt out one by one, so that the low, hot rows of a Zipf-like table are spread
  // evenly, and every round begins elsewhere, so that keys at a distance of 2^n are, too; sparse
  // keys by the upper bits of their hash (the lower ones address the table).
  uint32_t ShardOf(KeySpace space, Key key) const {
    if (shard_bits_ == 0) return 0;
    if (space == KeySpace::kSparse) return ShardOfHash(Mix(key));
    return static_cast<uint32_t>(key + Turn(key >> shard_bits_)) & (shards() - 1);
  }
  // Of a sparse key, by Mix(key).
  uint32_t ShardOfHash(uint64_t hash) const {
    return shard_bits_ == 0 ? 0 : static_cast<uint32_t>(hash >> (64 - shard_bits_));
  }
  // Dense rows of a shard are numbered by their round: `key >> shard_bits()`.
  Key DenseKey(uint32_t shard, uint64_t slot) const {
    return (slot << shard_bits_) | ((shard - Turn(slot)) & (shards() - 1));
  }
  // The number of a table's rows in this shard.
  uint64_t DenseSlots(uint64_t rows, uint32_t shard) const {
    const uint64_t whole = rows >> shard_bits_;
    return whole + (DenseKey(shard, whole) < rows ? 1 : 0);
  }
  Owner OwnerOf(uint32_t shard) const { return owners_[shard]; }
  uint32_t shards() const { return 1u << shard_bits_; }
  uint32_t shard_bits() const { return shard_bits_; }
  uint64_t version() const { return version_; }

 private:
  // Where round `slot` begins (Knuth's multiplicative hash).
  uint32_t Turn(uint64_t slot) const {
    return shard_bits_ == 0
               ? 0
               : static_cast<uint32_t>((slot * 0x9e3779b97f4a7c15ull) >> (64 - shard_bits_));
  }

  uint32_t shard_bits_ = 0;
  uint64_t version_ = 1;
  std::vector<Owner> owners_;
};

// The server that has all that is not rows: clocks, barriers, progress, blobs, the course of
// checkpoints. It is there from the beginning to the end.
inline constexpr int kLeader = 0;
// An index is below it.
inline constexpr int kMostServers = 65535;

}  // namespace shoal::ps
