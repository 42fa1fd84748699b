// The state that all services of one server share: its options, its lanes, the initial partition,
// its role, and whether it has stopped.
//
// Owned by ServerCore (server/server_core.h), which outlives the services that point to it.
// Thread rules: `options`, `partition` and the list of lanes are constant after construction; a
// lane's content is guarded by its own lock (Lane::Guard); the rest is atomic.
// Lock order: lanes in ascending index, then the services' own mutexes, all of which are leaves.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "ps/lane/lane.h"
#include "ps/lane/server_options.h"

namespace shoal::ps {

enum class ServerRole : uint8_t {
  kPrimary,  // serves clients
  kStandby,  // serves no client: its replica group may be at another process
  kBackup,   // applies the log of its primary
};

// A position while rows are copied out of a lane; see Replicator::CopySomeRows and
// ShardService::CopyShard.
struct RowCursor {
  uint32_t table = 0;
  uint32_t shard = 0;
  size_t slot = 0;
  bool done = false;
};

class ServerContext {
 public:
  // Makes one empty lane per thread. `options` must be valid.
  explicit ServerContext(ServerOptions options_in);
  ServerContext(const ServerContext&) = delete;
  ServerContext& operator=(const ServerContext&) = delete;

  bool is_leader() const { return options.index == kLeader; }
  uint32_t lane_count() const { return static_cast<uint32_t>(lanes.size()); }
  Lane& lane(uint32_t index) { return *lanes[index]; }
  const Lane& lane(uint32_t index) const { return *lanes[index]; }
  // Lane 0, whose lock guards the state that is not divided among lanes.
  Lane& first_lane() { return *lanes[0]; }
  const Lane& first_lane() const { return *lanes[0]; }
  bool serves_clients() const { return role == ServerRole::kPrimary && !stopped; }

  // Every request is refused from now on; wakes WaitForStop. Idempotent.
  void Stop();
  // Waits for at most `time`. True: the server has stopped.
  bool WaitForStop(Duration time);
  // "server 3 stopped", as Unavailable.
  Status StoppedStatus() const;

  const ServerOptions options;
  const Partition partition;
  std::vector<std::unique_ptr<Lane>> lanes;
  // Random; identifies the rows of this server. A backup has that of its primary.
  std::atomic<uint64_t> instance;
  std::atomic<ServerRole> role{ServerRole::kPrimary};
  std::atomic<bool> stopped{false};

 private:
  Mutex stop_mu_;
  CondVar stop_cv_;
};

}  // namespace shoal::ps
