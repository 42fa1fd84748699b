// Which server, and which of its lanes, owns a key: keys → virtual shards → owners.
//
// Built alike by clients (from what servers say in their welcome) and by servers. The shard of a
// key never changes; the owner of a shard is a versioned table, so that shards can move.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "ps/initializer.h"
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
  // evenly; sparse keys by the upper bits of their hash (the lower ones address the table).
  uint32_t ShardOf(KeySpace space, Key key) const {
    if (shard_bits_ == 0) return 0;
    return static_cast<uint32_t>(space == KeySpace::kDense ? key & (shards() - 1)
                                                           : Mix(key) >> (64 - shard_bits_));
  }
  Owner OwnerOf(uint32_t shard) const { return owners_[shard]; }
  uint32_t shards() const { return 1u << shard_bits_; }
  uint32_t shard_bits() const { return shard_bits_; }
  uint64_t version() const { return version_; }

 private:
  uint32_t shard_bits_ = 0;
  uint64_t version_ = 1;
  std::vector<Owner> owners_;
};

// The server that holds a blob.
inline int BlobOwner(std::string_view name, int servers) {
  return static_cast<int>(Mix(Crc32c(name.data(), name.size()) + 1) %
                          static_cast<uint64_t>(servers));
}

}  // namespace shoal::ps
