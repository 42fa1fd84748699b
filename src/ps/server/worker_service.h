// Requests of workers to the leader: clocks, barriers and progress, and which workers count.
//
// Part of ServerCore. Only server 0 (the leader) uses it; other servers hold an empty one. All
// functions: under lane 0's lock. WorkerRegistry holds the rules; this class decodes requests,
// keeps each worker's latest progress and notices workers that stay away.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ps/lane/control_request.h"
#include "ps/lane/server_context.h"
#include "ps/server/worker_registry.h"

namespace shoal::ps {

class WorkerService {
 public:
  // `context` outlives it.
  explicit WorkerService(ServerContext* context)
      : context_(context), registry_(context->options.workers) {}

  // kClock, kBarrier, kGetProgress.
  Status HandleClock(ControlRequest* request);
  Status HandleBarrier(ControlRequest* request);
  Status HandleGetProgress(ControlRequest* request);

  // The worker of `hello` has connected: it counts from now on.
  void Join(const Hello& hello);
  // The worker's connection is gone. It counts until client_grace has passed.
  void OnConnectionLost(int worker) { disconnected_[worker] = context_->options.clock->Now(); }
  // The worker has left, or is dead: it counts no more.
  void Remove(int worker);
  // Workers whose connection has been gone for client_grace.
  std::vector<int> Expired(TimePoint now) const;
  bool has_disconnected() const { return !disconnected_.empty(); }
  // A backup that takes over: every worker of the lane has to connect again.
  void ExpectReconnections();

  void SetProgress(int worker, std::string_view bytes) { progress_[worker] = bytes; }
  // The latest progress of each worker.
  const std::map<int, std::string>& progress() const { return progress_; }

  // For replication: the registry without the answers that it owes.
  void SaveRegistry(ByteWriter* writer) const { registry_.Save(writer); }
  Status LoadRegistry(ByteReader* reader) { return registry_.Load(reader); }

 private:
  Status LeaveBarrier(ControlRequest* request);

  ServerContext* const context_;
  WorkerRegistry registry_;
  std::map<int, std::string> progress_;
  std::map<int, TimePoint> disconnected_;  // since when
};

// "worker 3 has not entered, worker 4 has not entered, and 2 more"; empty for no workers.
std::string DescribeWorkers(std::string_view what, const std::vector<int>& workers);

}  // namespace shoal::ps
