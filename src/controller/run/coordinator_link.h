// The connections of a job's run to its coordinator: the client that receives events and sends
// commands, and without a shared directory the transfers of files and outputs. Used by job_run.cc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "controller/files/log_delivery.h"
#include "controller/run/controller.h"
#include "controller/run/coordinator_status.h"
#include "controller/threads/loop_task_group.h"
#include "net/event_loop.h"
#include "rendezvous/client/coordinator_client.h"
#include "rendezvous/client/file_uploader.h"
#include "rendezvous/client/output_downloader.h"

namespace shoal::controller {

// What the link needs of its run. All pointers must outlive it.
struct CoordinatorLinkOptions {
  net::Loop* loop = nullptr;
  LoopTaskGroup* tasks = nullptr;
  engine::Engine* engine = nullptr;
  Executor* executor = nullptr;  // of calls of the engine; null: the loop's thread
  ConnectCoordinatorClient connect = {};
  std::string id = {};             // the job's
  std::filesystem::path dir = {};  // the job's
  bool shared = true;              // the coordinator sees `dir`
  const job::Job* job = nullptr;
  LogDelivery* logs = nullptr;
  int64_t after_seq = 0;  // events up to this number are known
  int64_t epoch = 0;      // of the server's lead (lease.h)
};

// Called on the loop's thread.
struct CoordinatorLinkCallbacks {
  std::function<bool()> may_connect = {};  // false while the run does not want a connection
  std::function<void(const std::string&)> on_note = {};
  std::function<void(const rendezvous::JobEvent&)> on_event = {};
  std::function<void(const Status&)> on_closed = {};
  std::function<void(const Status&)> on_outputs = {};  // all have arrived, or cannot be fetched
};

// Must be used on the loop's thread. Connects at most one client at a time; commands sent without a
// client are kept for the next one.
class CoordinatorLink {
 public:
  using Command = std::function<void(rendezvous::CoordinatorClient*)>;

  CoordinatorLink(CoordinatorLinkOptions options, CoordinatorLinkCallbacks callbacks)
      : options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        last_seq_(options_.after_seq) {}
  ~CoordinatorLink() { StopWatching(); }
  CoordinatorLink(const CoordinatorLink&) = delete;
  CoordinatorLink& operator=(const CoordinatorLink&) = delete;

  // Connects as soon as the coordinator's address is in the shared directory. No effect without
  // one.
  Status Watch();
  // Connects soon, even without a notification, unless the engine is then starting the coordinator.
  void ConnectAfterDelay();
  // No effect with a client.
  void Connect();
  // Drops the client. Must not be called from its callbacks.
  void Disconnect() { client_.reset(); }
  // Drops the client and ends the transfers.
  void Close();

  void Send(Command command);
  // Sends what a person asks for; first continues a coordinator that a signal has stopped.
  void Ask(Command command);
  void AckVerdict();
  // Sends the command at once; false if no client is connected.
  bool Kill(const std::string& reason);
  // Ends the transfer of outputs once all have arrived; then on_outputs is called. Only without a
  // shared directory.
  void FinishOutputs() { output_downloader_->Finish(); }

  // An engine event of the coordinator.
  void ApplyEngineEvent(const engine::TaskEvent& event) { status_.ApplyEvent(event); }
  // The engine is starting the coordinator.
  bool starting() const { return status_.starting(); }
  bool running() const { return status_.running(); }
  bool connected_once() const { return connected_once_; }
  // Number of the last event.
  int64_t last_seq() const { return last_seq_; }
  // Counts an end of the coordinator; returns their number since the last connection.
  int CountDeath() { return ++deaths_; }

 private:
  void StopWatching();
  // A function that finds the coordinator's address for one connection.
  std::function<Result<rendezvous::CoordinatorAddress>()> MakeFinder() const;
  rendezvous::CoordinatorClientOptions ClientOptions();
  void StartTransfers(const rendezvous::CoordinatorClientOptions& like);

  const CoordinatorLinkOptions options_;
  const CoordinatorLinkCallbacks callbacks_;
  CoordinatorStatus status_;
  UniqueFd changes_;
  net::Loop::Id changes_id_ = 0;
  bool connected_once_ = false;
  int deaths_ = 0;    // since the last connection
  int64_t last_seq_;  // of the last event
  std::vector<Command> pending_commands_;
  std::unique_ptr<rendezvous::CoordinatorClient> client_;
  std::unique_ptr<rendezvous::OutputDownloader> output_downloader_;
  std::unique_ptr<rendezvous::FileUploader> file_uploader_;  // of a job with files
};

}  // namespace shoal::controller
