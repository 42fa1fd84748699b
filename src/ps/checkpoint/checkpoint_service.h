// A server's part in checkpoints: collecting markers, freezing lanes, writing its file, committing,
// and restoring at the start (docs/design/checkpoint.md describes the whole protocol).
//
// Part of ServerCore. Handlers and state: under lane 0's lock, except HandleBegin, which runs under
// the lock of the request's lane. Files are written and committed on a thread of its own.
// The leader (server 0) also runs the protocol: it numbers checkpoints, requests markers, and
// refuses new workers until the cut is complete, so that all servers agree on the workers that take
// part.
#pragma once

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ps/checkpoint/checkpoint_id_allocator.h"
#include "ps/checkpoint/checkpoint_thread.h"
#include "ps/checkpoint/restore_point.h"
#include "ps/checkpoint/server_file_writer.h"
#include "ps/lane/control_request.h"
#include "ps/metrics.h"

namespace shoal::ps {

class ShardService;
class WorkerService;
struct RestoredRows;

class CheckpointService {
 public:
  // All that is pointed to outlives it.
  CheckpointService(ServerContext* context, BlobStore* blobs, WorkerService* workers,
                    ShardService* shards);

  // --- At the start ---
  // Makes the checkpoint directory; restores from it if the options ask for it, and reserves it for
  // this job if this server is the only leader that the job may have.
  Status Open();
  // Restores rows, progress and blobs from the newest intact checkpoint, if the options ask for it.
  // DataLoss: checkpoints exist and none of them is intact.
  Status RestoreIfWanted();
  // The rows of these shards in the checkpoint that this server was restored from, or the newest
  // intact one if that has been removed since; nothing if it restored none. Any thread; reads the
  // whole checkpoint.
  Result<std::vector<RestoredRows>> ReadRows(const std::set<uint32_t>& shards) const;
  // The checkpoint that this server was restored from; -1: none. Any thread.
  int64_t restored() const { return restored_; }

  // --- Requests ---
  // While a checkpoint is under way the request waits for the next one.
  Status HandleStart(ControlRequest* request);
  Status HandleBegin(ControlRequest* request);
  Status HandleWrite(ControlRequest* request);
  Status HandleCommit(ControlRequest* request);
  Status HandleAbort(ControlRequest* request);
  Status HandleUnderWay(ControlRequest* request);

  // --- Events ---
  // The progress that came with a worker's marker.
  void SetMarkerProgress(int worker, std::string_view bytes) { marker_progress_[worker] = bytes; }
  // A worker asks to join with a new session. Unavailable while a cut is collecting markers;
  // aborts the checkpoint if the worker's earlier session still owes its marker.
  Status AdmitWorker(const Hello& hello);
  // The session has been welcomed: requests its marker again if it is still missing.
  void OnWelcomed(uint64_t session);
  // The session's connection is gone. Aborts the checkpoint that this session drives.
  void OnConnectionLost(uint64_t session);
  // The worker counts no more. Aborts the checkpoint if its marker is missing.
  void OnWorkerRemoved(int worker);
  // Aborts a checkpoint that has taken longer than checkpoint_timeout. True while one is under way.
  bool Tick(TimePoint now);
  // Waits for the file that is being written. The context must have been stopped.
  void Stop() { thread_.Stop(); }

  // --- State for others ---
  RestorePoint restore_point(bool in_use) const {
    return {restored_, committed_, current_, in_use};
  }
  CheckpointMetrics metrics() const;
  // Replication: the id that was allocated last, and what a backup gets from its primary.
  int64_t last_id() const { return ids_.last(); }
  void SetReplicated(int64_t restored, int64_t last_id);

 private:
  // A request for a checkpoint that is not answered yet.
  struct Start {
    uint64_t session;
    Answer answer;
  };
  Status Restore();
  void StartNext();
  Status Begin(const Start& start);
  void AnswerJoined(const Manifest& manifest, std::string_view workers);
  // The session waits for no checkpoint any more.
  void Withdraw(uint64_t session);
  // Whether the cut waits for a session of this worker.
  bool MustSendMarker(int worker) const;
  std::vector<int> WorkersWithoutMarker() const;
  void Abort(int64_t id, const Status& why);
  void RequestMarkers(const std::set<uint64_t>& sessions, int64_t id);
  void OnFrozen(int64_t id, const Status& status);
  // On the thread.
  Result<std::string> Write(int64_t id);
  Result<std::string> Commit(const Manifest& manifest);

  ServerContext* const context_;
  BlobStore* const blobs_;
  WorkerService* const workers_;
  ShardService* const shards_;
  std::atomic<int64_t> restored_{-1};
  std::set<int64_t> damaged_;  // checkpoints that the restore skipped; constant afterwards

  // Guarded by lane 0's lock.
  CheckpointIdAllocator ids_;
  int64_t committed_ = -1;         // the last one since this server started
  int64_t current_ = -1;           // leader: the checkpoint under way; -1: none
  bool awaiting_markers_ = false;  // leader: the cut is not complete
  TimePoint began_{};
  uint64_t driver_ = 0;                         // session of the Admin that drives `current_`
  std::vector<Start> waiting_;                  // came while `current_` was under way, in order
  std::vector<Start> joined_;                   // answered when `current_` is committed
  std::set<uint64_t> must_send_marker_;         // sessions that take part in the cut
  std::map<int, std::string> marker_progress_;  // as it came with the markers of `current_`
  std::map<int, std::string> cut_progress_;     // what goes into the file
  CheckpointMetrics metrics_;                   // without the fields that depend on the present
  TimePoint written_at_{};

  ServerFileWriter writer_;  // the thread's
  CheckpointThread thread_;
};

}  // namespace shoal::ps
