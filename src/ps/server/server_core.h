// What a server does, whatever its clients' transport: lanes, who counts, blobs, checkpoints.
//
// server.h is its public face; tcp_server.cc and in_process_transport.cc bring requests. Each
// control request is handled under the lock of the lane that it came to; what concerns the whole
// job (clocks, barriers, progress, the course of a checkpoint) comes to lane 0 of server 0. Locks
// are taken in the order of the lanes' numbers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "ps/checkpoint/checkpoint_chain.h"
#include "ps/checkpoint/checkpoint_id_allocator.h"
#include "ps/server/lane.h"
#include "ps/server/server.h"
#include "ps/server/worker_registry.h"
#include "ps/shard_map.h"
#include "ps/storage/blob_store.h"

namespace shoal::ps {

class CheckpointWriter;
class ReplicaHost;
class ShardMover;
struct SavedRows;

class ServerCore {
 public:
  // Restores from the newest whole checkpoint if asked to.
  static Result<std::shared_ptr<ServerCore>> Make(ServerOptions options);
  // An empty one that takes everything from its primary.
  static std::shared_ptr<ServerCore> MakeBackup(ServerOptions options);
  ~ServerCore();

  // Refuses everything from now on and waits for the checkpoint thread. Idempotent.
  void Stop();
  bool stopped() const { return stopped_; }
  bool WaitForStop(Duration time);  // waits so long, or until it is stopped: whether it is

  const ServerOptions& options() const { return options_; }
  uint64_t instance() const { return instance_; }
  int64_t restored_checkpoint() const { return restored_; }
  uint32_t lanes() const { return static_cast<uint32_t>(lanes_.size()); }
  Lane& lane(uint32_t index) { return *lanes_[index]; }

  // A proven connection. Unavailable: a checkpoint is being cut, newcomers try again.
  Result<Welcome> Join(const Hello& hello, const std::shared_ptr<ServerConnection>& peer);
  // To be called once Welcome is on its way: what the newcomer must know besides.
  void OnWelcomed(const Hello& hello);
  // The connection is gone.
  void OnConnectionLost(const Hello& hello, const ServerConnection* peer);

  // A control frame or marker of a joined connection, under the Guard of its lane. An error means
  // that the stream is broken: the connection must be closed.
  Status Control(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                 const FrameHeader& head, std::string_view body);

  // With copies: who else is served by this process. Set before anybody can connect.
  void SetHost(std::weak_ptr<ReplicaHost> host) { host_ = std::move(host); }
  // Which core of this process a newcomer is to join; null: this one. Unavailable: none for now.
  Result<std::shared_ptr<ServerCore>> Route(const Hello& hello);

  // --- Copies: server_replica.cc. See docs/design/replication.md ---
  enum class Role : uint8_t { kPrimary, kStandby, kBackup };
  Role role() const { return role_; }
  void SetRole(Role role) { role_ = role; }
  // The primary's end. Begins a copy of a lane: sessions, tables and, of lane 0, the rest, but
  // rows.
  void StartReplication(uint32_t lane, std::shared_ptr<ReplicaConnection> stream);
  void ResumeReplication(uint32_t lane, std::shared_ptr<ReplicaConnection> stream,
                         uint64_t confirmed);
  // Where copying rows has got to.
  struct RowCursor {
    uint32_t table = 0;
    uint32_t shard = 0;
    size_t slot = 0;
    bool done = false;
  };
  // Some more rows, if the backup is not too far behind. True: some went out.
  bool LogRows(uint32_t lane, RowCursor* cursor);
  // From now on no answer leaves before the backup has what it could have seen.
  void EnableSyncReplication(uint32_t lane);
  // A sign of incarnation to the backup, which it must confirm as well.
  void PingBackups();
  // There is no backup any more.
  void StopReplication();
  struct LogState {
    bool down = false;
    bool paired = false;
    uint64_t end = 0;
    uint64_t confirmed = 0;
  };
  LogState log_state(uint32_t lane);
  void OnReplicaConfirmed(uint32_t lane, const ReplicaConnection* from, uint64_t position);
  void OnReplicaConnectionLost(uint32_t lane, const ReplicaConnection* stream);
  // The backup's end. Whether all lanes are whole.
  bool whole();
  TimePoint last_entry_at() const { return TimePoint(Duration(last_entry_at_)); }
  bool has_primary_connection();
  // The primary is dead: serves from now on, under the same instance.
  void TakeOver();
  // Another one serves: closes all connections.
  void DropClients();
  // What Make leaves out where copies decide whether a checkpoint is wanted.
  Status RestoreIfWanted() { return WantsRestore() ? Restore() : Status::Ok(); }

  // --- Shards that move: server_shards.cc. See docs/design/partition.md ---
  // Who owns what, as everybody may know it.
  ShardMap shards();
  // Takes what is known better elsewhere, and has the lanes act on it. Under no lane's lock.
  Status MergeShards(const ShardMap& other);
  // The owner's end, for ShardMover.
  Status BeginDeparture(uint32_t shard, uint32_t* lane, ShardAssignment* place);
  std::vector<std::string> SpecsOf(uint32_t lane, std::set<uint32_t>* sent);
  // The next rows of the shard as an entry; empty: that was all.
  std::string CopyShard(uint32_t lane, RowCursor* cursor);
  // Rows that have changed since they were copied; with `freeze` they are the last ones, if they
  // are few and no checkpoint is being cut: *frozen.
  std::vector<std::string> CopyDirty(uint32_t lane, bool freeze, bool* frozen);
  // The frozen shard is another's from now on, if nothing speaks against it. What to tell it.
  Result<ShardMap> Depart(uint32_t lane, uint32_t shard, const ShardAssignment& to);
  bool DepartureConfirmed(uint32_t lane);
  void EndDeparture(uint32_t lane);
  // Takes no more shards, for it is going to leave; with `last` no more clients: it has nothing.
  void SetLeaving(bool last);
  bool leaving() const { return leaving_; }
  // Shards that are here, and clients that have not said good-bye.
  size_t owned_shards();
  // Of shards that began to come here: their owners by this server's map.
  std::map<uint32_t, Owner> Arrivals();
  // What has come of it is dropped if its owner has kept it. The owner must have been asked since
  // this server takes no more, and must not have been giving it away then.
  void ForgetArrival(uint32_t shard);
  size_t clients();  // workers' connections; who only looks on needs nothing
  // Nothing is here any more: whoever has a copy need not take over. Waits until it has heard.
  bool AnnounceEmpty(TimePoint deadline);
  // A copy's: its primary said so.
  bool emptied() const { return emptied_; }
  // All know by now whom it concerned: clients may.
  void PublishShards();
  void AnnounceShards();

  void ReportDead(int worker);
  // Presumes dead whom client_grace has run out for; true while there is somebody to watch. To be
  // called now and then by the first lane's thread.
  bool Tick();
  Counters counters();
  std::vector<HotKey> hot_keys(size_t n);
  ServerMetrics metrics();

  std::atomic<uint64_t> refused_connections{0};
  std::atomic<uint64_t> wire_bytes_in{0};
  std::atomic<uint64_t> wire_bytes_out{0};

 private:
  // One control request on its way through a handler.
  struct Request {
    const Hello& from;
    Session* session;
    const FrameHeader& head;
    std::string_view body;
    Answer answer;
  };
  explicit ServerCore(ServerOptions options);
  Status Restore();
  bool WantsRestore() const { return !options_.checkpoint_dir.empty() && options_.restore; }

  bool is_leader() const { return options_.index == kLeader; }
  Answer AnswerTo(const std::shared_ptr<ServerConnection>& peer, uint64_t id, Lane* lane) const;
  Status HandleMarker(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                      const FrameHeader& head, std::string_view body);
  // An error is answered by the caller.
  Status Handle(Request* request);
  Status HandleBlob(Request* request);
  Status HandleLeader(Request* request);
  Status PutBlob(Request* request);
  Status GetBlob(Request* request);
  Status Clock(Request* request);
  Status Barrier(Request* request);
  Status GetProgress(Request* request);
  void Leave(Request* request);
  void RemoveWorker(int worker);

  // server_replica.cc
  Result<Welcome> JoinServer(const Hello& hello, const std::shared_ptr<ServerConnection>& peer);
  Status ServerControl(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                       const FrameHeader& head, std::string_view body);
  Status ApplyEntry(uint32_t lane, const Entry& entry);
  Status ApplyRowsEntry(uint32_t lane, const Entry& entry);
  Status ApplyJoinEntry(uint32_t lane, const Entry& entry);
  Status ApplyControlEntry(uint32_t lane, const Entry& entry);
  Status ApplyStateEntry(uint32_t lane, const Entry& entry);
  // `move`: only rows of shards that arrive in this attempt; 0: any.
  Status TakeRows(uint32_t lane, std::string_view content, uint64_t move);
  Status ApplyServerEntry(std::string_view content);
  Status ApplyBlobEntry(const Entry& entry);
  void LogControl(const Hello& from, const FrameHeader& head, std::string_view body);
  void LogServer();
  void LogBlobs();

  // server_shards.cc
  // What the others know that one that starts again must know before it restores rows.
  Status RecoverShardMap();
  Status HandleShards(Request* request);
  Status ShardBytes(Request* request);
  Status MoveShard(Request* request);
  Status HandleMoveFrame(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                         const FrameHeader& head, std::string_view body);
  Status ApplyMovedEntry(const Hello& from, const FrameHeader& head, std::string_view body);
  Status ApplyShardsEntry(uint32_t lane, const Entry& entry);
  Status MergeUnderFirst(ShardMap other);
  void AdoptShards(Lane* lane, const ShardMap& map);
  void LogShards(uint32_t lane);
  void NotifyClients();
  std::shared_ptr<ShardMover> mover();

  // server_checkpoint.cc
  Status CheckpointStart(Request* request);
  Status CheckpointBegin(Request* request);
  Status CheckpointWrite(Request* request);
  Status CheckpointCommit(Request* request);
  Status CheckpointAbort(Request* request);
  bool MustSendMarker(int worker) const;
  std::vector<int> WorkersWithoutMarker() const;
  void AbortCheckpoint(int64_t id, const Status& why);
  void RequestMarkers(const std::set<uint64_t>& sessions, int64_t id);
  void OnFrozen(int64_t id, const Status& status);
  // On the checkpoint thread.
  Result<std::string> WriteCheckpoint(int64_t id);
  Result<std::string> WriteFile(int64_t id);
  struct Writing;  // one checkpoint's file
  Result<std::vector<CutInterval>> FrozenCutIntervals(int64_t id);
  Result<uint64_t> BytesSince(int64_t id, const WrittenCheckpoint& base);
  Result<const WrittenCheckpoint*> ChooseBase(int64_t id,
                                              const std::vector<CutInterval>& cut_intervals);
  Status WriteTables(Writing* writing);
  Status WriteOneTable(Writing* writing, uint32_t lane, uint32_t table);
  Status WriteBlobs(Writing* writing);
  Status RunInBackground(std::function<Result<std::string>()> work, Answer answer);
  void RunCheckpointThread();
  void WhenIdle(std::function<void()> then);

  const ServerOptions options_;
  std::atomic<uint64_t> instance_;  // a copy's comes from its primary before anybody joins
  std::weak_ptr<ReplicaHost> host_;
  std::atomic<Role> role_{Role::kPrimary};
  std::atomic<bool> leaving_{false};
  std::atomic<bool> drained_{false};
  std::atomic<bool> empty_{false};         // leaves, and has nothing
  std::atomic<bool> emptied_{false};       // a copy of such a one
  std::atomic<int64_t> last_entry_at_{0};  // a copy's: when its primary was last heard of
  Partition partition_;
  std::mutex map_mu_;   // a leaf
  ShardMap map_;        // guarded by map_mu_: what lanes go by
  ShardMap published_;  // guarded by map_mu_: without what its new owner has not been told yet
  std::atomic<uint64_t> owned_version_{1};  // of the shards of this server
  std::atomic<uint64_t> departed_at_{0};    // position in its lane's log of the last decision
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<bool> stopped_{false};
  std::atomic<int64_t> restored_{-1};
  bool lost_rows_ = false;     // it came back empty; constant once it serves
  std::set<int64_t> damaged_;  // checkpoints that were passed over then
  int64_t committed_ = -1;     // the last since it started; guarded by the first lane's lock

  // Under the first lane's lock.
  BlobStore blobs_;
  WorkerRegistry workers_;
  std::map<int, std::string> progress_;         // latest known
  std::map<int, std::string> marker_progress_;  // as it came with the present markers
  std::map<int, std::string> cut_progress_;     // what goes into the checkpoint
  std::map<int, TimePoint> lost_;               // workers without a connection, since when
  CheckpointIdAllocator checkpoint_ids_;
  int64_t checkpoint_ = -1;        // in progress; leader only
  bool awaiting_markers_ = false;  // newcomers wait
  TimePoint checkpoint_began_{};
  CheckpointMetrics checkpoint_metrics_;  // without what follows from the present time
  TimePoint checkpoint_written_{};
  uint64_t checkpoint_owner_ = 0;  // session of the Admin that drives it
  std::set<uint64_t> must_send_marker_;

  // The checkpoint thread, one piece of work at a time.
  std::mutex work_mu_;
  std::condition_variable work_cv_;
  std::function<Result<std::string>()> work_;      // guarded by work_mu_
  Answer work_answer_;                             // guarded by work_mu_
  bool working_ = false;                           // guarded by work_mu_
  std::vector<std::function<void()>> after_work_;  // guarded by work_mu_
  std::thread worker_;                             // started with the first work
  CheckpointChain chain_;                          // its own
  std::mutex mover_mu_;
  std::shared_ptr<ShardMover> mover_;  // guarded by mover_mu_; made when first needed
};

}  // namespace shoal::ps
