// One thread's share of a server: the rows of some shards, and the state of each client's requests.
//
// Lane::Guard takes the lane's lock, which covers everything below. The lane's own thread
// (tcp_server.cc), in-process clients (in_process_transport.cc), the checkpoint's writer and the
// shard mover take it; over TCP the lane's thread is nearly always alone, and the others hold it
// for microseconds. Lanes share no rows.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "ps/lane/hot_keys.h"
#include "ps/lane/replica_entry.h"
#include "ps/lane/replica_log.h"
#include "ps/shard_map.h"
#include "ps/storage/row_request.h"
#include "ps/storage/table.h"
#include "ps/transport/server_connection.h"
#include "ps/transport/transport.h"
#include "ps/wire/server_report.h"

namespace shoal::ps {

// A lane's state of one client. It outlives the client's connections; `id` identifies it.
struct Session {
  uint64_t id = 0;
  int client = -1;
  uint64_t last_seq = 0;  // the last applied request; the next must follow without a gap
  int64_t marked = -1;    // the checkpoint whose marker came last
  int64_t settled = -1;   // leader: the last one whose markers are all answered
  bool left = false;
  bool dead = false;  // presumed dead, until it connects again
  TimePoint lost{};   // an observer's: when it was first seen without a connection
  std::weak_ptr<ServerConnection> peer;
  KeyCache key_cache;  // of the present connection
  // Requests that were refused because rows had moved, newest last: sent again, they are refused
  // again. As many as can be unanswered.
  std::deque<uint64_t> moved;
};

// The interval between two cuts of a lane, which rows are marked with when they change. Numbers of
// different generations are not comparable.
struct CutInterval {
  uint32_t generation = 0;
  uint8_t number = 0;  // 0: changes are not tracked
};

// Owned by ServerContext for the life of the server. Everything but the constructor and Guard is
// called under a Guard of this lane. At most one snapshot is open at a time (Marker,
// BeginCheckpoint, EndCheckpoint), and at most one shard departs.
class Lane {
 public:
  // All that is pointed to must outlive the lane. `functions`: null for none.
  Lane(const Partition* partition, Owner self, const Functions* functions);

  // Dense tables that need more are refused. Before the first table.
  void LimitMemory(uint64_t bytes) { memory_limit_ = bytes; }

  // Takes the lock. At the end releases it, then flushes the connections that were queued
  // meanwhile, or appends them to `sink` for its owner to flush.
  class Guard {
   public:
    explicit Guard(Lane& lane, std::vector<std::shared_ptr<ServerConnection>>* sink = nullptr)
        : lane_(lane), sink_(sink), lock_(lane.mu_) {}
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Lane& lane_;
    std::vector<std::shared_ptr<ServerConnection>>* const sink_;
    MutexLock lock_;
  };

  // --- Sessions ---

  // The session of a new connection. A session that another one of the same worker has replaced is
  // refused with FailedPrecondition.
  Result<Session*> Join(const Hello& hello, const std::shared_ptr<ServerConnection>& peer);
  // Drops the sessions of observers that have left, or have been disconnected for long enough.
  void ForgetObservers(TimePoint now);
  // Null if unknown.
  Session* FindSession(uint64_t id);
  const std::map<uint64_t, Session>& sessions() const { return sessions_; }
  const std::map<int, uint64_t>& current() const { return current_; }
  const std::set<uint64_t>& replaced() const { return replaced_; }
  // Flushes the peer's replies when the Guard ends.
  void QueueFlush(std::shared_ptr<ServerConnection> peer) { to_flush_.push_back(std::move(peer)); }
  std::vector<std::shared_ptr<ServerConnection>>* to_flush() { return &to_flush_; }

  // From now on rows record the interval in which they were last pushed to. Before the first table.
  void TrackChanges() { cut_interval_ = {1, 1}; }
  // The present interval; while a snapshot is open, the one that its cut ends.
  CutInterval cut_interval() const { return cut_interval_; }
  size_t memory_bytes() const { return arena_.bytes(); }

  // Finds or makes a table.
  Status CreateTable(const TableSpec& spec);
  Table* FindTable(uint32_t id);
  const std::map<uint32_t, std::unique_ptr<Table>>& tables() const { return tables_; }

  // One push, pull, both or call. *order: the stream had a gap or keys that cannot be understood,
  // the connection must be closed. Another error refuses this request alone; nothing of it was
  // applied. A request that was applied before is not applied again, but answered.
  Status RowOperation(Session* session, const FrameHeader& head, const RowSource& source,
                      bool* order);
  // Of the last RowOperation, if it was refused: FrameHeader::flags of the refusal.
  uint8_t refusal() const { return refusal_; }
  // The session's marker of a checkpoint has arrived.
  Status Marker(Session* session, const FrameHeader& head);
  // All that the session had sent before its markers is answered, everywhere.
  Status Settled(Session* session, const FrameHeader& head);
  void Leave(Session* session);

  // Opens the snapshot, unless a marker has, and sets the sessions whose markers it needs. `frozen`
  // is answered when all have arrived: with the shards that the snapshot holds, one bit each; with
  // nothing if rows moved between markers, so that it is no consistent cut; or with Aborted.
  // `settles`: also waits until all of them have settled.
  void BeginCheckpoint(int64_t id, std::set<uint64_t> required, bool settles, Answer frozen);
  // Ends snapshot `id`, or any if -1; a waiting Begin is answered with `why`.
  void EndCheckpoint(int64_t id, const Status& why);
  bool FrozenFor(int64_t id) const { return snapshot_.frozen && snapshot_.id == id; }
  const std::set<uint64_t>& required() const { return snapshot_.required; }

  // --- Shards that move: lane_shards.cc. See docs/design/partition.md ---
  ShardState state(uint32_t shard) const { return states_[shard]; }
  // Owns from now on what the map says, except for a shard that arrives under a later epoch than
  // the map's. True: something changed.
  bool ApplyShardMap(const ShardMap& map);
  // The owner's end: records from now on which of the shard's rows change. One shard at a time.
  Status BeginDeparture(uint32_t shard);
  // The keys that changed, by table, and forgets them.
  std::map<uint32_t, std::vector<Key>> TakeDirty();
  size_t dirty_rows() const;
  // Stops serving the departing shard, so that its rows do not change; Unfreeze serves it again.
  // False: a checkpoint is being cut. A cut with a marker but without BeginCheckpoint after
  // kMaxBlockedDepartures attempts is dropped: its driver uses an outdated map of owners.
  bool Freeze();
  void Unfreeze();
  // Whether the frozen shard may be given away now: no snapshot holds it.
  bool MayDepart() const { return snapshot_.id < 0; }
  void EndDeparture();
  // The next owner's end: makes room for the shard, and drops rows of an earlier attempt.
  Status PrepareArrival(uint32_t shard, uint32_t epoch, uint64_t move);
  // An arriving shard: the epoch under which it will be owned here, and the attempt to move it.
  struct Arrival {
    uint32_t epoch = 0;
    uint64_t move = 0;
  };
  const std::map<uint32_t, Arrival>& arriving() const { return arriving_; }
  // Drops the rows of an arriving shard. Only when it is known that its owner keeps it.
  void ForgetArrival(uint32_t shard) {
    if (arriving_.contains(shard)) Drop(shard);
  }
  uint64_t ShardBytes(uint32_t shard) const;
  // Of a backup: the session's request was refused because rows had moved.
  void RecordMoved(Session* session, uint64_t seq);

  // The lane's tables, its most requested keys, its counters.
  ServerReport Describe() const;
  // --- Answers and the log for the backup ---
  // Answers a request: at once, or when the backup has everything that the answer could have seen.
  void Respond(const std::shared_ptr<ServerConnection>& peer, const FrameHeader& head,
               std::string_view body);
  // Appends an entry for the backup; does nothing without one.
  void Log(std::string entry);
  // The backup has all entries up to `position`: sends the answers that waited for that.
  void Confirm(uint64_t position);
  // Sends the answers that may go out now: the backup is connected again, or there is none any
  // more.
  void SendReady();
  // For a peer that is not read while the log is full: it is flushed when there is room.
  void AwaitRoom(std::shared_ptr<ServerConnection> peer) { await_room_.push_back(std::move(peer)); }

  // --- The backup's end ---
  // A session of the primary's, made if it is new here.
  Session* ReplicatedSession(uint64_t id, int client);
  void MarkSessionReplaced(uint64_t id) { replaced_.insert(id); }
  // Sets rows as a kCopyRows entry holds them. With `move` only rows of shards that arrive in this
  // attempt (FailedPrecondition otherwise); 0: any. InvalidArgument: not such an entry.
  Status ApplyCopiedRows(std::string_view content, uint64_t move);
  // A marker in the primary's log: its cut cannot be taken here any more.
  void ApplyMarkerOfPrimary(Session* session, uint64_t seq, int64_t checkpoint);

  Counters counters;
  HotKeys hot_keys;
  ReplicaLog log;
  uint64_t copied = 0;  // position of the last entry from the primary
  bool whole = false;   // all rows that the primary had are here
  std::weak_ptr<ServerConnection> primary_connection;  // the primary's connection

 private:
  struct Snapshot {
    int64_t id = -1;
    bool begun = false;          // `required` is known
    int blocked_departures = 0;  // departures that it has held up before it was begun
    bool frozen = false;
    bool settles = false;         // sessions must have settled, too
    bool torn = false;            // rows moved between markers
    bool empty = false;           // no shard was here: sessions that never came here need no marker
    std::set<uint64_t> required;  // sessions
    std::string shards;           // that were here when it opened, a bit each
    Answer on_frozen;
  };
  struct Departure {
    uint32_t shard = 0;
    std::map<uint32_t, std::unordered_set<Key>> dirty;  // by table
  };

  Status CheckSequence(const Session& session, uint64_t seq, bool* order) const;
  // False: it has come before.
  Result<bool> AcceptMarker(Session* session, const FrameHeader& head);
  bool IsMissingMarker(uint64_t session) const;
  WriteMode ModeOf(const Session& session) const;
  void OpenSnapshot(int64_t id);
  void FreezeIfComplete();
  void NextCutInterval();
  Status CheckMemory(const TableSpec& spec) const;
  // The function that the table's spec or the request names.
  Status FindOptimizer(const TableSpec& spec, const RowFunction** function) const;
  Status FindCalled(const FrameHeader& head, RowUpdate* change) const;
  Status CheckRows(const Table& table, const FrameHeader& head, const RowRequest& request);
  bool InTransit(const Table& table, const KeyBatch& batch) const;
  Status RefuseMoved(Session* session, const FrameHeader& head, bool duplicate, Status why);
  void RecordDirty(const Table& table, const FrameHeader& head, const RowRequest& request);
  void SetState(uint32_t shard, ShardState state);
  void Drop(uint32_t shard);
  Status Run(Table* table, const FrameHeader& head, RowRequest* request, const RowUpdate& change,
             std::optional<WriteMode> write);
  void Count(const FrameHeader& head, bool duplicate);
  Status LogRows(const Session& session, const FrameHeader& head, const RowSource& source,
                 const RowRequest& request);

  const Partition* const partition_;
  const Owner self_;
  uint64_t memory_limit_ = UINT64_MAX;
  const Functions* const functions_;
  Mutex mu_;
  RowArena arena_;
  std::map<uint32_t, std::unique_ptr<Table>> tables_;
  std::map<uint64_t, Session> sessions_;
  std::map<int, uint64_t> current_;  // worker → its present session
  std::set<uint64_t> replaced_;      // sessions that may not come back
  Snapshot snapshot_;
  std::vector<ShardState> states_;  // by shard
  int in_transit_ = 0;              // shards that arrive or leave
  std::optional<Departure> departure_;
  std::map<uint32_t, Arrival> arriving_;  // by shard
  uint8_t refusal_ = 0;
  CutInterval cut_interval_;
  int64_t no_cut_below_ = 0;  // checkpoints whose markers went to a primary that died
  std::vector<std::shared_ptr<ServerConnection>> await_room_;
  RowRequest::Scratch scratch_;
  std::vector<std::shared_ptr<ServerConnection>> to_flush_;
};

}  // namespace shoal::ps
