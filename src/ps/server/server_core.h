// One server without its transports: dispatches requests to the services that handle them.
//
// server.h is the public interface; tcp_server.h and in_process_transport.cc bring connections and
// frames. A ServerCore serves one server index; a process has several when it is a backup of others
// (replica_host.h).
//
//   rows                     Lane                 one per thread, with a lock of its own
//   clocks, barriers         WorkerService        leader
//   blobs                    BlobService          leader
//   checkpoints, restore     CheckpointService
//   moves of shards          ShardService
//   log for the backup       Replicator           the primary's end
//   log of the primary       BackupReceiver       the backup's end
//
// Lifecycle: Make or MakeBackup, Stop, destruction. Thread rules: all functions may be called from
// any thread. Each control request is handled under the lock of the lane that it came to; requests
// that concern the whole job come to lane 0 of server 0, the leader. Locks of lanes are taken in
// ascending order.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "ps/checkpoint/checkpoint_service.h"
#include "ps/lane/control_request.h"
#include "ps/lane/server_context.h"
#include "ps/replication/backup_receiver.h"
#include "ps/replication/replicator.h"
#include "ps/server/blob_service.h"
#include "ps/server/server.h"
#include "ps/server/shard_service.h"
#include "ps/server/worker_service.h"

namespace shoal::ps {

class ReplicaHost;

class ServerCore final : private ControlHandler {
 public:
  // Restores from the newest intact checkpoint if the options ask for it. With replicas the
  // ReplicaHost decides that later (checkpoints().RestoreIfWanted).
  static Result<std::shared_ptr<ServerCore>> Make(ServerOptions options);
  // An empty one that takes everything from its primary.
  static std::shared_ptr<ServerCore> MakeBackup(ServerOptions options);
  ~ServerCore() override;

  // Refuses every request from now on, waits for background threads, closes all connections.
  // Idempotent.
  void Stop();
  bool stopped() const { return context_.stopped; }
  // Waits for at most `time`. True: the server has stopped.
  bool WaitForStop(Duration time) { return context_.WaitForStop(time); }

  const ServerOptions& options() const { return context_.options; }
  uint64_t instance() const { return context_.instance; }
  uint32_t lanes() const { return context_.lane_count(); }
  Lane& lane(uint32_t index) { return context_.lane(index); }
  CheckpointService& checkpoints() { return checkpoints_; }
  ShardService& shards() { return shards_; }
  Replicator& replicator() { return replicator_; }
  BackupReceiver& backup() { return backup_; }

  // --- Connections ---
  // Which core of this process a new connection is for; null: this one. Unavailable: none now.
  Result<std::shared_ptr<ServerCore>> Route(const Hello& hello);
  // An authenticated connection. Unavailable: try again, for example after a checkpoint's cut.
  Result<Welcome> Join(const Hello& hello, const std::shared_ptr<ServerConnection>& peer);
  // To be called once the Welcome has been queued.
  void OnWelcomed(const Hello& hello);
  void OnConnectionLost(const Hello& hello, const ServerConnection* peer);
  // A control frame or marker of a joined connection, under the Guard of its lane. An error means
  // that the stream of frames is broken: the connection must be closed.
  Status Control(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                 const FrameHeader& head, std::string_view body);
  // Connected workers that have not left.
  size_t ConnectedWorkers();
  // Closes all connections.
  void DropClients();

  // --- Replication ---
  // The groups of replicas that this process takes part in. Before any connection.
  void SetHost(std::weak_ptr<ReplicaHost> host) { host_ = std::move(host); }
  void SetRole(ServerRole role) { context_.role = role; }
  // The primary is dead: serves from now on, under the same instance.
  void TakeOver();

  // The worker is dead: clocks, barriers and checkpoints no longer wait for it.
  void ReportDead(int worker);
  // Removes workers whose connection has been gone for client_grace, and aborts overdue
  // checkpoints. True while there is something to watch. Called regularly by lane 0's thread.
  bool Tick();

  // --- Metrics: snapshots; each takes every lane's lock for a moment ---
  Counters counters();
  std::vector<HotKey> hot_keys(size_t n);
  ServerMetrics metrics();
  std::atomic<uint64_t> refused_connections{0};
  std::atomic<uint64_t> wire_bytes_in{0};
  std::atomic<uint64_t> wire_bytes_out{0};

 private:
  explicit ServerCore(ServerOptions options);
  Replicator::Services services() { return {&workers_, &blobs_, &checkpoints_, &shards_}; }

  Result<Welcome> JoinServer(const Hello& hello, const std::shared_ptr<ServerConnection>& peer);
  Status HandleMarker(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                      const FrameHeader& head, std::string_view body);
  // Frames of other servers.
  Status HandleServerFrame(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                           const FrameHeader& head, std::string_view body);
  Status HandleMoveFrame(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                         const FrameHeader& head, std::string_view body);

  // ControlHandler. An error is sent as the answer by the caller.
  Status Handle(ControlRequest* request) override;
  void RemoveWorker(int worker) override;
  Status HandleFirstLane(ControlRequest* request);
  Status HandleLeader(ControlRequest* request);
  void HandleLeave(ControlRequest* request);

  ServerContext context_;
  std::weak_ptr<ReplicaHost> host_;  // expired or never set without replicas
  bool lost_rows_ = false;           // came back without its rows; constant once it serves
  BlobService blobs_;
  WorkerService workers_;
  ShardService shards_;
  CheckpointService checkpoints_;
  Replicator replicator_;
  BackupReceiver backup_;
};

}  // namespace shoal::ps
