// Measures what servers hold, plans moves of shards that even it out, and has the servers make
// them.
//
// Behind Admin::RebalanceShards (admin.h), which makes all moves at once, and AutoBalancer, which
// makes a few now and then. Only drives: the servers move rows themselves (shard_mover.h).
#pragma once

#include <vector>

#include "ps/client/admin.h"
#include "ps/shard_map.h"

namespace shoal::ps {

class Channel;
class ClientCore;

// The loads of the connected servers.
struct ServerLoads {
  std::vector<ShardLoad> shards;
  std::vector<uint32_t> lanes;          // by server; 0: takes no rows
  std::vector<uint64_t> fixed;          // by server: bytes that are not rows
  std::vector<int> leaving;             // servers that leave, ascending
  std::vector<uint64_t> bytes() const;  // of rows, by server
};

class Rebalancer {
 public:
  // For one run. `core` outlives it.
  Rebalancer(ClientCore* core, TimePoint deadline) : core_(core), deadline_(deadline) {}

  // Plans anew when another client has moved a shard meanwhile.
  Result<RebalanceInfo> Run(const Admin::Rebalance& how);
  Result<RebalanceInfo> MoveOne(uint32_t shard, const Owner& to);

  // Connects to the servers that Members names, and asks all for their loads.
  Result<ServerLoads> MeasureLoads();
  Status Move(const ShardMove& move);
  // Servers that had no part in it are told, too: one that starts again asks them.
  Result<RebalanceInfo> Finish();

 private:
  Status PlanAndMove(const Admin::Rebalance& how);
  Status Drain(const Admin::Rebalance& how);
  Result<ShardMap> Map();
  Status MeasureLane(Channel* channel, ServerLoads* all);

  ClientCore* const core_;
  const TimePoint deadline_;
  RebalanceInfo info_;
};

}  // namespace shoal::ps
