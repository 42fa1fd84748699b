#include "controller/run/coordinator_link.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/access/directory_owner.h"
#include "controller/files/state_home.h"
#include "controller/store/file_watch.h"
#include "engine/tasks/coordinator_location.h"
#include "job/execution/job_dir.h"

namespace shoal::controller {
namespace {

// Delay after which the client connects even without a notification of the file's change.
constexpr Duration kConnectDelay = std::chrono::milliseconds(250);

using Address = Result<rendezvous::CoordinatorAddress>;

Address Dial(engine::Engine* engine, const std::string& job) {
  TRY_ASSIGN(const engine::Endpoint endpoint, engine->Dial(job));
  return rendezvous::CoordinatorAddress{endpoint.host, endpoint.port};
}

// Dials on an executor: each answer serves one call of Find, which does not wait for it. Must be
// used on the loop's thread.
class AsyncFinder : public std::enable_shared_from_this<AsyncFinder> {
 public:
  AsyncFinder(engine::Engine* engine, std::string job, Executor* executor,
              LoopTaskGroup::Poster poster)
      : engine_(engine), job_(std::move(job)), executor_(executor), poster_(std::move(poster)) {}

  Address Find() {
    if (answer_) return *std::exchange(answer_, std::nullopt);
    if (!std::exchange(asking_, true)) {
      executor_->Execute([self = shared_from_this()] {
        const auto answer = std::make_shared<Address>(Dial(self->engine_, self->job_));
        self->poster_.Post([self, answer] {
          self->asking_ = false;
          self->answer_ = *answer;
        });
      });
    }
    return Unavailable("the engine is asked for the coordinator's address");
  }

 private:
  engine::Engine* const engine_;
  const std::string job_;
  Executor* const executor_;
  const LoopTaskGroup::Poster poster_;
  bool asking_ = false;
  std::optional<Address> answer_;
};

}  // namespace

Status CoordinatorLink::Watch() {
  if (!options_.shared) return Status::Ok();
  {
    const FileAccessAs owner(options_.dir);
    TRY_ASSIGN(changes_, OpenDirectoryWatch(options_.dir));
  }
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

std::function<Address()> CoordinatorLink::MakeFinder() const {
  if (options_.executor == nullptr)
    return [engine = options_.engine, id = options_.id] { return Dial(engine, id); };
  const auto finder = std::make_shared<AsyncFinder>(options_.engine, options_.id, options_.executor,
                                                    options_.tasks->poster());
  return [finder] { return finder->Find(); };
}

rendezvous::CoordinatorClientOptions CoordinatorLink::ClientOptions() {
  rendezvous::CoordinatorClientOptions options;
  options.job_dir = options_.dir.string();
  options.find = MakeFinder();
  options.logs = options_.logs->wanted();
  if (!options_.shared) options.mirror_dir = options_.dir.string();
  options.after_seq = last_seq_;
  options.epoch = options_.epoch;
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
  const rendezvous::TransferOptions files{MakeFinder(), ReadToken(options_.dir).value_or(""),
                                          job::JobDir(options_.dir).files(), like.give_up_after};
  rendezvous::TransferOptions outputs = files;
  outputs.find = MakeFinder();
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

void CoordinatorLink::Ask(Command command) {
  if (options_.shared)
    engine::ContinueCoordinator(*options_.engine, options_.id, options_.dir.string());
  Send(std::move(command));
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
