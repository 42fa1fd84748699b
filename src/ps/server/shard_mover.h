// Gives shards of this server to other servers while it serves them (docs/design/partition.md).
//
// One per ShardService, made when first needed. Its thread does one move at a time: it copies the
// rows, then the rows that have changed meanwhile, until few are left; then the shard is frozen
// until the new owner has them and has confirmed that it owns the shard.
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "ps/server/shard_connection.h"
#include "ps/transport/server_connection.h"

namespace shoal::ps {

class ShardService;

struct MoveRequest {
  uint32_t shard = 0;
  Owner to;
};
// The cost of a move.
struct MoveReport {
  uint64_t bytes = 0;       // that were sent
  uint64_t stalled_us = 0;  // while no server served the shard
};

// Thread-safe, except that Stop must not be called under a lane's lock.
class ShardMover {
 public:
  // `shards` outlives it.
  explicit ShardMover(ShardService* shards);
  ~ShardMover();

  // Queues a move. It is answered when the move is over, with the fields of a MoveReport, u64 each.
  void Enqueue(const MoveRequest& order, Answer answer);
  // Sends the shard map to all other servers, in the background.
  void Announce();
  // Gives up the move under way, drops the queued ones and ends the thread. Idempotent.
  void Stop();

 private:
  void Run();
  Status MoveOne(const MoveRequest& order, MoveReport* report);
  Status CopyAll(uint32_t lane, uint32_t shard);
  Status CatchUp(uint32_t lane);
  Status Freeze(uint32_t lane);
  Status CommitMove(uint32_t lane, const MoveRequest& order, uint32_t epoch);
  Status SendEntries(const std::vector<std::string>& entries);
  Status SendSpecs(uint32_t lane);
  Status NotifyNewOwner(int server, const ShardMap& decided);
  void NotifyAll();
  Hello HelloTo(int server, uint32_t lane) const;
  bool stopped();
  // Until the time is over. False, at once: Stop was called.
  bool Pause(Duration time);

  ShardService* const shards_;
  ShardDialer dialer_;

  // The move under way; the thread's.
  std::shared_ptr<ShardConnection> rows_;   // to the lane that gets them
  std::shared_ptr<ShardConnection> first_;  // to the first lane of that server
  std::set<uint32_t> specs_;                // tables that it has been told of
  uint64_t sent_ = 0;
  uint64_t bytes_ = 0;

  Mutex mu_;
  CondVar wake_;
  bool stop_ GUARDED_BY(mu_) = false;
  std::deque<std::function<void()>> work_ GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace shoal::ps
