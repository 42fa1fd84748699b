#include "controller/run/coordinator_link.h"

#include <algorithm>
#include <utility>

#include "controller/files/state_home.h"
#include "controller/store/file_watch.h"
#include "job/execution/job_dir.h"

namespace shoal::controller {
namespace {

// Delay after which the client connects even without a notification of the file's change.
constexpr Duration kConnectDelay = std::chrono::milliseconds(250);

}  // namespace

Status CoordinatorLink::Watch() {
  if (!options_.shared) return Status::Ok();
  TRY_ASSIGN(changes_, OpenDirectoryWatch(options_.dir));
  TRY_ASSIGN(changes_id_, options_.loop->WatchReadable(changes_.get(), [this] {
    const std::string name = job::JobDir(options_.dir).coordinator().filename().string();
    if (ConsumeChanges(changes_.get(), name)) Connect();
  }));
  if (!options_.engine->HasOwnQueue()) ConnectAfterDelay();  // else when it runs
  return Status::Ok();
}

void CoordinatorLink::StopWatching() {
  if (changes_id_ != 0) options_.loop->Cancel(std::exchange(changes_id_, 0));
  changes_.Reset();
}

void CoordinatorLink::ConnectAfterDelay() {
  options_.tasks->PostAfter(kConnectDelay, [this] {
    if (!starting()) Connect();
  });
}

rendezvous::CoordinatorClientOptions CoordinatorLink::ClientOptions() {
  rendezvous::CoordinatorClientOptions options;
  options.job_dir = options_.dir.string();
  options.find = [this]() -> Result<rendezvous::CoordinatorAddress> {
    TRY_ASSIGN(const engine::Endpoint endpoint, options_.engine->Dial(options_.id));
    return rendezvous::CoordinatorAddress{endpoint.host, endpoint.port};
  };
  options.logs = options_.logs->wanted();
  if (!options_.shared) options.mirror_dir = options_.dir.string();
  options.after_seq = last_seq_;
  options.log_offsets = options_.logs->offsets();
  options.give_up_after = CoordinatorTimeout(options_.job->limits, *options_.engine);
  if (options_.shared) options.lives = [this] { return status_.IsRunning(callbacks_.on_note); };
  return options;
}

void CoordinatorLink::Connect() {
  StopWatching();
  if (client_ != nullptr || !callbacks_.may_connect()) return;
  rendezvous::CoordinatorClientOptions options = ClientOptions();
  rendezvous::CoordinatorClientCallbacks callbacks;
  callbacks.on_connected = [this] {
    if (connected_once_) callbacks_.on_note("the coordinator is back");
    connected_once_ = true;
    deaths_ = 0;
  };
  callbacks.on_event = [this](const rendezvous::JobEvent& event) {
    last_seq_ = std::max(last_seq_, event.seq);
    callbacks_.on_event(event);
  };
  if (options.logs) callbacks.on_log = std::bind_front(&LogDelivery::Deliver, options_.logs);
  callbacks.on_closed = [this](const Status& status) { callbacks_.on_closed(status); };
  if (!options_.shared) StartTransfers(options);
  client_ = options_.connect(options_.loop, std::move(options), std::move(callbacks));
  for (const Command& command : pending_commands_) command(client_.get());
  pending_commands_.clear();
}

void CoordinatorLink::StartTransfers(const rendezvous::CoordinatorClientOptions& like) {
  const rendezvous::TransferOptions files{like.find, ReadToken(options_.dir).value_or(""),
                                          job::JobDir(options_.dir).files(), like.give_up_after};
  rendezvous::TransferOptions outputs = files;
  outputs.directory = job::JobDir(options_.dir).outputs();
  if (!options_.job->files.empty())
    file_uploader_ = rendezvous::FileUploader::Start(options_.loop, files);
  output_downloader_ =
      rendezvous::OutputDownloader::Start(options_.loop, outputs, callbacks_.on_outputs);
}

void CoordinatorLink::Close() {
  client_.reset();
  output_downloader_.reset();
  file_uploader_.reset();
}

void CoordinatorLink::Send(Command command) {
  if (client_ != nullptr) return command(client_.get());
  pending_commands_.push_back(std::move(command));
}

void CoordinatorLink::AckVerdict() {
  if (client_ != nullptr) client_->AckVerdict();
}

bool CoordinatorLink::Kill(const std::string& reason) {
  if (client_ == nullptr || !client_->connected()) return false;
  client_->Kill(reason);
  return true;
}

}  // namespace shoal::controller
