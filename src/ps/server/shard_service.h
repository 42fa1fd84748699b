// A server's part in moving shards: the map of owners, and the rows that leave and arrive
// (docs/design/partition.md describes the whole protocol).
//
// Part of ServerCore. ShardMover drives a move from the owner's end, one at a time, on its own
// thread; the functions of "the next owner's end" handle what another server's mover sends.
// Thread rules: handlers run under the lock of the request's lane; all other functions take the
// locks that they need and must be called without a lane's lock, unless they say otherwise.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "ps/lane/control_request.h"
#include "ps/lane/server_context.h"
#include "ps/shard_map.h"
#include "ps/storage/blob_store.h"

namespace shoal::ps {

class ShardMover;

// Rows of a checkpoint, of one table.
struct RestoredRows {
  TableSpec spec;
  std::vector<Key> keys;
  std::vector<float> values;  // as RowLayout::saved_floats, for each key
};

class ShardService {
 public:
  // Both outlive it. `blobs`: guarded by lane 0's lock.
  ShardService(ServerContext* context, const BlobStore* blobs);
  ~ShardService();
  // Gives up the move under way and ends the mover's thread. The context must have been stopped.
  void Stop();
  ServerContext& context() const { return *context_; }

  // --- The map of owners ---
  // As clients and other servers may know it: without a move that its new owner has not confirmed.
  ShardMap Map();
  // Merges what another server or client knows, and has the lanes act on it.
  Status Merge(const ShardMap& other);
  // Reads the rows of these shards; later ones replace earlier ones.
  using ReadRows =
      std::function<Result<std::vector<RestoredRows>>(const std::set<uint32_t>& shards)>;
  // After the restore at the start, and before the first connection. A client, or another server,
  // may then tell this one that it owns shards whose rows did not come with a move: it was started
  // again, and no other server knew their owners then. Their rows are read from the checkpoint
  // before they are served. Not with replicas.
  void SetReadRows(ReadRows read) { read_rows_ = std::move(read); }
  // The version of the set of shards that this server owns; grows whenever it changes.
  uint64_t owned_version() const { return owned_version_; }
  // Asks the other servers for their maps, in a later incarnation of this server, so that it does
  // not restore rows that it has given away.
  Status Recover();
  // Publishes moves that the new owner has confirmed, to clients at once and, with Announce, to all
  // other servers in the background.
  void Publish();
  void Announce();
  // A backup takes over: `lane`, under its lock, acts on all that the logs of the lanes have told.
  void AdoptAll(Lane* lane);

  // --- Requests ---
  Status HandleShards(ControlRequest* request);
  Status HandleShardBytes(ControlRequest* request);
  Status HandleMoveShard(ControlRequest* request);
  Status HandleTakesRows(ControlRequest* request);

  // --- The owner's end, for ShardMover ---
  // Starts to record which rows of the shard change. FailedPrecondition: another server owns it.
  Status BeginDeparture(uint32_t shard, uint32_t* lane, ShardAssignment* assignment);
  // Specs of the lane's tables that are not in *sent yet.
  std::vector<std::string> SpecsOf(uint32_t lane, std::set<uint32_t>* sent);
  // The next rows of the shard as an entry; empty: all have been copied.
  std::string CopyShard(uint32_t lane, RowCursor* cursor);
  // Rows that have changed since they were copied. With `freeze` the shard stops serving, unless a
  // checkpoint is being cut; *done: it has. Otherwise *done: the rest is small.
  std::vector<std::string> CopyDirty(uint32_t lane, bool freeze, bool* done);
  // Gives the frozen shard to its new owner; returns the map to send to it. From here on the move
  // is final. Aborted: a checkpoint began meanwhile.
  Result<ShardMap> Depart(uint32_t lane, uint32_t shard, const ShardAssignment& to);
  // Whether the backup of the lane, if there is one, has the decision.
  bool DepartureConfirmed(uint32_t lane);
  // Serves the shard again, unless it has departed.
  void EndDeparture(uint32_t lane);

  // --- The next owner's end ---
  // A frame of another server's mover, under the lane's lock.
  Status ApplyMoveFrame(const Hello& from, const FrameHeader& head, std::string_view body);

  // --- Leaving ---
  // This server accepts no more shards; with `last` no more clients either: it owns nothing.
  void SetLeaving(bool last);
  bool refuses_clients() const { return empty_; }
  size_t OwnedShards();
  // Shards whose arrival has begun, with their owners by this server's map.
  std::map<uint32_t, Owner> Arrivals();
  // Drops the rows that have come of an arriving shard. Its owner must have kept the shard, and
  // must have been asked since this server accepts no more.
  void ForgetArrival(uint32_t shard);

  // --- Replication, under the lane's lock ---
  // Appends the map and the arriving shards to the lane's log.
  void LogState(uint32_t lane);
  // Applies a kMoved, kShards or kArriving entry of the primary's log.
  Status ApplyEntry(uint32_t lane, const Entry& entry);

 private:
  // All shards are this server's, with the epoch ServerOptions::takeover_epoch.
  Status TakeOverAll();
  Status MergeUnderFirst(ShardMap other);
  void AdoptShards(Lane* lane, const ShardMap& map);
  // `map` with the lanes that this server has: it may have had more when it got a shard.
  ShardMap OfPresentLanes(ShardMap map) const;
  // The lane's shards by `map` that it neither serves nor gets by a move. Under its lock.
  std::set<uint32_t> ShardsWithoutRows(uint32_t lane, const ShardMap& map);
  // The rows of such shards of all lanes; nothing if there are none.
  Result<std::vector<RestoredRows>> ReadMissingRows(const ShardMap& map);
  // AdoptShards, and writes the rows of shards that the lane lacked. Under its lock.
  void AdoptWithRows(uint32_t lane, const ShardMap& map, const std::vector<RestoredRows>& rows);
  void NotifyClients();
  std::shared_ptr<ShardMover> mover();

  ServerContext* const context_;
  const BlobStore* const blobs_;
  ReadRows read_rows_;
  std::atomic<bool> leaving_{false};
  std::atomic<bool> drained_{false};  // gets no shards by automatic balancing
  std::atomic<bool> empty_{false};    // leaves and owns nothing
  std::atomic<uint64_t> owned_version_{1};
  std::atomic<uint64_t> departed_at_{0};    // log position of the last departure, in its lane
  Mutex map_mu_;                            // a leaf
  ShardMap map_ GUARDED_BY(map_mu_);        // what the lanes act on
  ShardMap published_ GUARDED_BY(map_mu_);  // see Map
  Mutex mover_mu_;
  std::shared_ptr<ShardMover> mover_ GUARDED_BY(mover_mu_);  // made when first needed
};

}  // namespace shoal::ps
