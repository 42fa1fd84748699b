// The primary's end of replication: what goes into the logs of its lanes for the backup
// (docs/design/replication.md describes the whole protocol).
//
// Part of ServerCore; ReplicaHost drives it. Each function takes the locks of the lanes that it
// needs and must be called without one.
#pragma once

#include <memory>

#include "ps/lane/control_request.h"
#include "ps/lane/server_context.h"

namespace shoal::ps {

class BlobService;
class CheckpointService;
class ShardService;
class WorkerService;

class Replicator {
 public:
  // The state of a server beside its lanes. All of it outlives the replicator.
  struct Services {
    WorkerService* workers;
    BlobService* blobs;
    CheckpointService* checkpoints;
    ShardService* shards;
  };
  Replicator(ServerContext* context, const Services& services)
      : context_(context), services_(services) {}

  // Begins replication of a lane to a new backup: logs its sessions, its tables and, for lane 0,
  // the state beside the lanes, but no rows.
  void Start(uint32_t lane, std::shared_ptr<ReplicaConnection> connection);
  // The same backup over a new connection; it has all entries up to `confirmed`.
  void Resume(uint32_t lane, std::shared_ptr<ReplicaConnection> connection, uint64_t confirmed);
  // Logs the next rows of the lane, unless the backup is too far behind. True: some were logged.
  bool CopySomeRows(uint32_t lane, RowCursor* cursor);
  // From now on an answer waits until the backup has everything that the answer could have seen.
  void EnableSync(uint32_t lane);
  // Logs an empty entry on idle lanes, which the backup has to confirm.
  void Ping();
  // There is no backup any more.
  void Stop();
  // Tells the backup that this server has left and owns nothing, so that the backup does not take
  // over; waits until it has confirmed. False: it has not by the deadline.
  bool AnnounceEmpty(TimePoint deadline);

  struct LogState {
    bool down = false;  // no connection
    bool paired = false;
    uint64_t end = 0;  // position of the last entry
    uint64_t confirmed = 0;
  };
  LogState log_state(uint32_t lane);

  // Events of ReplicaConnection.
  void OnConfirmed(uint32_t lane, const ReplicaConnection* from, uint64_t position);
  void OnConnectionLost(uint32_t lane, const ReplicaConnection* connection);

 private:
  void LogServerState();
  void LogSessions(Lane* lane);

  ServerContext* const context_;
  const Services services_;
};

}  // namespace shoal::ps
