#include "rendezvous/transfer/output_uploader.h"

#include <optional>
#include <utility>

#include "base/id.h"
#include "base/log.h"
#include "rendezvous/transfer/output_source.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;

// An OutputSource over a connection of its own. Ends when the coordinator has stored everything,
// when the outputs cannot be sent, or when the connection is given up.
class SocketOutputUploader final : public OutputUploader {
 public:
  SocketOutputUploader(net::Loop* loop, OutputUploaderOptions options,
                       std::function<void(const Status&)> on_end)
      : loop_(loop), options_(std::move(options)), on_end_(std::move(on_end)) {}

  ~SocketOutputUploader() override { loop_->Cancel(end_timer_); }

  void Begin() {
    OutputConnection line;
    line.send = [this](std::string_view type, json::object fields) {
      connection_->Send(type, std::move(fields));
    };
    line.send_binary = [this](std::string frame) { connection_->SendBinary(std::move(frame)); };
    line.queued_bytes = [this] { return connection_->queued_bytes(); };
    source_.emplace(options_.directory, std::move(line));
    if (const Status opened = source_->Open(); !opened.ok()) return End(opened);
    CoordinatorConnectionOptions connection_options;
    connection_options.find = options_.find;
    connection_options.token = options_.token;
    connection_options.give_up_after = options_.give_up_after;
    CoordinatorConnectionCallbacks calls;
    calls.hello = [this] {
      return json::object{{"kind", "outputs"},
                          {"role", options_.key.role},
                          {"index", options_.key.index},
                          {"attempt", options_.key.attempt},
                          {"upload", upload_}};
    };
    calls.heartbeat = [] { return json::object(); };
    calls.on_up = [] {};
    calls.on_message = [this](const std::string& type, const json::object& message) {
      const Status status = HandleMessage(type, message);
      if (!status.ok()) End(status);
    };
    calls.on_binary = [](std::string_view) {};
    calls.on_drain = [this] { Pump(); };
    calls.on_down = [this](const Status& why) {
      LogWarning("lost the coordinator while outputs were sent: {}", why.message());
      source_->OnDisconnect();
    };
    calls.on_given_up = [this](const Status& why) {
      End(why.ok() ? Unavailable("the coordinator has ended") : why);
    };
    connection_ =
        CoordinatorConnection::Start(loop_, std::move(connection_options), std::move(calls));
  }

 private:
  Status HandleMessage(const std::string& type, const json::object& message) {
    if (end_timer_ != 0) return Status::Ok();
    TRY(source_->HandleMessage(type, message));
    if (!source_->stored()) return Status::Ok();
    // Removed only if it was sent from here: else it may be the only copy.
    std::error_code ignored;
    if (source_->sent()) fs::remove_all(options_.directory, ignored);
    End(source_->LeftOut());
    return Status::Ok();
  }

  void Pump() {
    if (end_timer_ != 0) return;
    const Status status = source_->Pump();
    if (!status.ok()) End(status);
  }

  void End(const Status& status) {
    if (end_timer_ != 0) return;
    end_timer_ = loop_->After(Duration::zero(), [this, status] {
      const auto on_end = on_end_;
      on_end(status);
    });
  }

  // Constant after construction.
  net::Loop* const loop_;
  const OutputUploaderOptions options_;
  const std::function<void(const Status&)> on_end_;
  const std::string upload_ = RandomHex(16);

  std::optional<OutputSource> source_;
  net::Loop::Id end_timer_ = 0;
  std::unique_ptr<CoordinatorConnection> connection_;
};

}  // namespace

std::unique_ptr<OutputUploader> OutputUploader::Start(net::Loop* loop,
                                                      OutputUploaderOptions options,
                                                      std::function<void(const Status&)> on_end) {
  auto sender = std::make_unique<SocketOutputUploader>(loop, std::move(options), std::move(on_end));
  sender->Begin();
  return sender;
}

}  // namespace shoal::rendezvous
