// Operations on all servers at once: consistent checkpoints, reports, and moves of shards.
//
// Runs wherever there is a Members: beside server 0 on a timer (`checkpoint.every`), or in a tool.
// It is an observer: clocks, barriers and checkpoints do not wait for it. The checkpoint protocol:
// docs/design/checkpoint.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "ps/client/client.h"
#include "ps/wire/server_report.h"

namespace shoal::ps {

struct CheckpointInfo {
  int64_t id = -1;
  uint64_t bytes = 0;        // of all files
  std::vector<int> workers;  // whose progress it holds
};

struct RebalanceInfo {
  std::vector<uint64_t> before;  // bytes of rows by server
  std::vector<uint64_t> after;   // as planned
  int moves = 0;
  int left = 0;  // moves that were planned and not made, beyond Rebalance::most
  uint64_t bytes_sent = 0;
  Duration longest_stall{0};  // of one shard, while no server served it
};

// One operation at a time; Cancel may be called from another thread.
class Admin {
 public:
  // options.index is ignored.
  static Result<std::unique_ptr<Admin>> Connect(ClientOptions options, Members* members);

  // Takes one checkpoint of all servers while training goes on; returns when it is durable and
  // committed, and older ones beyond the servers' keep_checkpoints are removed. Aborted or
  // DeadlineExceeded, naming the worker or server that did not answer: nothing of it stays, the
  // previous checkpoint is untouched. Not for two threads (or two Admins) at once: the second is
  // refused with FailedPrecondition.
  Result<CheckpointInfo> Checkpoint(Duration timeout = std::chrono::seconds(120));

  // Each server's tables, most requested keys and counters; by server index, empty for servers that
  // do not exist. Concurrent pushes may be included or not.
  Result<std::vector<ServerReport>> Describe(Duration timeout = std::chrono::seconds(10));

  // Evens out how many bytes servers hold, while training goes on: shards are given from those that
  // hold more than `tolerance` above the mean to those that hold less, one after the other. Stops
  // at the first that cannot be moved; those before stay where they are now.
  struct Rebalance {
    std::vector<int> drain = {};  // servers that are to hold nothing afterwards
    double tolerance = 0.05;
    // As a program that watches does it: begins only when a server holds more than `start` above
    // the mean, has nothing, or leaves; makes at most so many moves; gives nothing to drained
    // servers, which otherwise are drained no longer.
    bool by_itself = false;
    double start = 0;
    int most = 1 << 20;
  };
  Result<RebalanceInfo> RebalanceShards(const Rebalance& how,
                                        Duration timeout = std::chrono::minutes(10));
  // Moves one shard to a lane of a server.
  Result<RebalanceInfo> MoveShard(uint32_t shard, int server, uint32_t lane,
                                  Duration timeout = std::chrono::seconds(60));

  // As Server::ReportDead.
  Status ReportDead(int worker, Duration timeout = std::chrono::seconds(10));

  // Another thread's: whatever this one is waiting for fails, as all to come does.
  void Cancel();

  Client& client() { return *client_; }

 private:
  explicit Admin(std::unique_ptr<Client> client) : client_(std::move(client)) {}
  std::unique_ptr<Client> client_;
};

}  // namespace shoal::ps
