#include "ps/shard_map.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/bytes.h"

namespace shoal::ps {

ShardMap::ShardMap(const Partition& partition) : places_(partition.shards()) {
  for (uint32_t shard = 0; shard < shards(); ++shard) {
    places_[shard].owner = partition.OwnerOf(shard);
  }
}

uint64_t ShardMap::version() const {
  uint64_t version = 1;
  for (const ShardAssignment& place : places_) version += place.epoch;
  return version;
}

bool ShardMap::Merge(const ShardMap& other) {
  bool some = false;
  for (uint32_t shard = 0; shard < shards() && shard < other.shards(); ++shard) {
    if (other.places_[shard].epoch <= places_[shard].epoch) continue;
    places_[shard] = other.places_[shard];
    some = true;
  }
  return some;
}

std::string EncodeShards(const ShardMap& map) {
  std::string bytes;
  ByteWriter writer(&bytes);
  writer.Put(map.shards());
  for (uint32_t shard = 0; shard < map.shards(); ++shard) {
    writer.Put(map.At(shard).owner.server);
    writer.Put(map.At(shard).owner.lane);
    writer.Put(map.At(shard).epoch);
  }
  return bytes;
}

Status DecodeShards(std::string_view bytes, uint32_t shards, ShardMap* map) {
  ByteReader reader(bytes);
  uint32_t count = 0;
  TRY(reader.Get(&count));
  if (count != shards || reader.remaining() != uint64_t{shards} * 8) {
    return InvalidArgument(
        "a map with another number of shards: start all servers with the same number");
  }
  *map = ShardMap(Partition(shards, {1}));
  for (uint32_t shard = 0; shard < shards; ++shard) {
    ShardAssignment place;
    TRY(reader.Get(&place.owner.server));
    TRY(reader.Get(&place.owner.lane));
    TRY(reader.Get(&place.epoch));
    map->Set(shard, place);
  }
  return Status::Ok();
}

namespace {

// Bytes by server and by lane, and the moves so far.
class Planner {
 public:
  Planner(std::vector<ShardLoad> loads, const std::vector<uint32_t>& lanes,
          const std::vector<uint64_t>& fixed)
      : loads_(std::move(loads)), lanes_(lanes), servers_(fixed), by_lane_(lanes.size()) {
    servers_.resize(lanes.size());
    for (size_t server = 0; server < lanes.size(); ++server) {
      by_lane_[server].resize(std::max<uint32_t>(lanes[server], 1));
      if (lanes[server] > 0) takes_part_.insert(server);
      total_ += lanes[server] > 0 ? servers_[server] : 0;
    }
    from_.reserve(loads_.size());
    for (const ShardLoad& load : loads_) {
      from_.push_back(load.owner);
      servers_[load.owner.server] += load.bytes;
      total_ += load.bytes;
      auto& of_server = by_lane_[load.owner.server];
      if (load.owner.lane < of_server.size()) of_server[load.owner.lane] += load.bytes;
    }
  }

  std::vector<ShardMove> Plan(double tolerance) {
    if (takes_part_.empty()) return {};
    for (size_t i = 0; i < loads_.size(); ++i) {
      if (lanes_[loads_[i].owner.server] == 0) Give(i, Emptiest());
    }
    for (size_t step = 0; step < loads_.size() && takes_part_.size() > 1; ++step) {
      const size_t most = Fullest(), least = Emptiest();
      const double mean = static_cast<double>(total_) / static_cast<double>(takes_part_.size());
      const bool even = static_cast<double>(servers_[most]) <= mean * (1 + tolerance) &&
                        static_cast<double>(servers_[least]) >= mean * (1 - tolerance);
      if (even) break;
      const auto shard = BestOf(most, servers_[most] - servers_[least]);
      if (shard.has_value()) {
        Give(*shard, least);
        continue;
      }
      if (HasShards(most)) break;
      // Its fixed bytes do not move.
      takes_part_.erase(most);
      total_ -= servers_[most];
    }
    std::vector<ShardMove> moves;
    for (size_t i = 0; i < loads_.size(); ++i) {
      if (loads_[i].owner.server == from_[i].server) continue;
      moves.push_back({loads_[i].shard, from_[i], loads_[i].owner, loads_[i].bytes});
    }
    return moves;
  }

 private:
  size_t Fullest() const {
    return *std::max_element(takes_part_.begin(), takes_part_.end(),
                             [&](size_t a, size_t b) { return servers_[a] < servers_[b]; });
  }
  size_t Emptiest() const {
    return *std::min_element(takes_part_.begin(), takes_part_.end(),
                             [&](size_t a, size_t b) { return servers_[a] < servers_[b]; });
  }
  bool HasShards(size_t server) const {
    return std::any_of(loads_.begin(), loads_.end(), [&](const ShardLoad& load) {
      return load.owner.server == server && load.bytes > 0;
    });
  }
  // The shard of a server that brings two servers that differ by `gap` nearest to each other.
  std::optional<size_t> BestOf(size_t server, uint64_t gap) const {
    std::optional<size_t> best;
    uint64_t least = gap;
    for (size_t i = 0; i < loads_.size(); ++i) {
      if (loads_[i].owner.server != server || loads_[i].bytes == 0) continue;
      const uint64_t twice = 2 * loads_[i].bytes;
      const uint64_t left = twice > gap ? twice - gap : gap - twice;
      if (left >= least) continue;
      least = left;
      best = i;
    }
    return best;
  }
  void Give(size_t i, size_t server) {
    ShardLoad& load = loads_[i];
    servers_[load.owner.server] -= load.bytes;
    auto& of_old = by_lane_[load.owner.server];
    if (load.owner.lane < of_old.size()) of_old[load.owner.lane] -= load.bytes;
    servers_[server] += load.bytes;
    auto& of_new = by_lane_[server];
    const auto lane = std::min_element(of_new.begin(), of_new.end()) - of_new.begin();
    of_new[static_cast<size_t>(lane)] += load.bytes;
    load.owner = {static_cast<uint16_t>(server), static_cast<uint16_t>(lane)};
  }

  std::vector<ShardLoad> loads_;
  const std::vector<uint32_t> lanes_;
  std::vector<Owner> from_;
  std::vector<uint64_t> servers_;
  std::vector<std::vector<uint64_t>> by_lane_;
  uint64_t total_ = 0;
  std::set<size_t> takes_part_;  // servers
};

}  // namespace

std::vector<ShardMove> PlanMoves(std::vector<ShardLoad> loads, const std::vector<uint32_t>& lanes,
                                 double tolerance, const std::vector<uint64_t>& fixed) {
  std::erase_if(loads, [&](const ShardLoad& load) { return load.owner.server >= lanes.size(); });
  return Planner(std::move(loads), lanes, fixed).Plan(tolerance);
}

std::set<int> OwnersOf(const ShardMap& map) {
  std::set<int> owners;
  for (uint32_t shard = 0; shard < map.shards(); ++shard) owners.insert(map.At(shard).owner.server);
  return owners;
}

}  // namespace shoal::ps
