// The present owner of each virtual shard: partition.h gives the initial one, moves change it.
//
// Each shard has its own epoch, which only its owner raises, when it gives the shard away. Of two
// maps the one with the higher epoch is right about a shard: maps can be merged in any order, and
// moves need no global number (docs/design/partition.md). Held by servers (server_core.h)
// and clients (client_core.h).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ps/partition.h"

namespace shoal::ps {

struct ShardAssignment {
  Owner owner;
  uint32_t epoch = 0;  // how often it has moved
  bool operator==(const ShardAssignment&) const = default;
};

class ShardMap {
 public:
  ShardMap() = default;
  // The initial owners: no shard has moved.
  explicit ShardMap(const Partition& partition);

  uint32_t shards() const { return static_cast<uint32_t>(places_.size()); }
  const ShardAssignment& At(uint32_t shard) const { return places_[shard]; }
  void Set(uint32_t shard, const ShardAssignment& place) { places_[shard] = place; }
  // 1 and as much as there were moves: two maps of which neither lacks anything have the same.
  uint64_t version() const;
  // Takes what the other one knows better. True: it knew something. Both have as many shards.
  bool Merge(const ShardMap& other);

  bool operator==(const ShardMap&) const = default;

 private:
  std::vector<ShardAssignment> places_;
};

// docs/formats/ps-wire.md, "Shards".
std::string EncodeShards(const ShardMap& map);
// InvalidArgument or OutOfRange: not a map of so many shards.
Status DecodeShards(std::string_view bytes, uint32_t shards, ShardMap* map);

// Flags of a server in its answer to kShardBytes.
inline constexpr uint64_t kShardsLeave = 1;    // it leaves
inline constexpr uint64_t kShardsDrained = 2;  // it gets no rows by itself

// The load of one shard, and a decision to move it.
struct ShardLoad {
  uint32_t shard = 0;
  Owner owner;
  uint64_t bytes = 0;
};
struct ShardMove {
  uint32_t shard = 0;
  Owner from;
  Owner to;
  uint64_t bytes = 0;
};
// The moves after which no server holds more than `tolerance` (0.05: 5 %) above the mean, if shards
// are small enough for that; few of them rather than the best. `lanes[s]`: threads of server s; 0:
// it is to hold nothing. `fixed[s]`: bytes that server s holds besides and that do not move; a
// server that has more than its part without a shard is left alone, and the others share the rest.
// O(moves · shards).
std::vector<ShardMove> PlanMoves(std::vector<ShardLoad> loads, const std::vector<uint32_t>& lanes,
                                 double tolerance, const std::vector<uint64_t>& fixed = {});

// The servers that own some shard.
std::set<int> OwnersOf(const ShardMap& map);

}  // namespace shoal::ps
