#include "rendezvous/client/output_downloader.h"

#include <optional>
#include <utility>

#include "base/log.h"
#include "rendezvous/client/dialed_connection.h"
#include "rendezvous/transfer/output_store.h"

namespace shoal::rendezvous {
namespace {

// Stores outputs with an OutputStore over a connection that it has dialled itself. Reconnects until
// Finish has been answered.
class SocketOutputDownloader final : public OutputDownloader {
 public:
  SocketOutputDownloader(net::Loop* loop, const TransferOptions& line,
                         std::function<void(const Status&)> on_end)
      : loop_(loop), on_end_(std::move(on_end)), store_(line.directory) {
    CoordinatorConnectionCallbacks calls = TransferOptions::Callbacks("fetch_outputs");
    calls.on_up = [this] {
      if (finishing_) connection_->Send("finish", {});
    };
    calls.on_message = [this](const std::string& type, const json::object& message) {
      const Status status = HandleMessage(type, message);
      if (!status.ok()) LogWarning("outputs: message '{}': {}", type, status.message());
    };
    calls.on_binary = [this](std::string_view frame) {
      const Status status = store_.Received(&dialed_, frame);
      if (!status.ok()) dialed_.Send("failed", {{"text", status.message()}});
    };
    calls.on_down = [this](const Status& why) {
      LogInfo("lost the coordinator while outputs were fetched: {}", why.message());
      store_.Remove(&dialed_);
    };
    calls.on_given_up = [this](const Status& why) {
      over_ = why.ok() ? Unavailable("the coordinator has ended") : why;
      if (finishing_) End(*over_);
    };
    connection_ = CoordinatorConnection::Start(loop_, line.Options(), std::move(calls));
  }

  ~SocketOutputDownloader() override { loop_->Cancel(end_timer_); }

  void Finish() override {
    finishing_ = true;
    if (over_) return End(*over_);
    connection_->Send("finish", {});
  }

 private:
  Status HandleMessage(const std::string& type, const json::object& message) {
    if (type == "finished") {
      End(Status::Ok());
      return Status::Ok();
    }
    if (type != "offer") return store_.Received(&dialed_, type, message);
    store_.Remove(&dialed_);
    TRY_ASSIGN(const int64_t index, GetInt(message, "index"));
    TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
    const LogKey key{GetStringOr(message, "role", ""), static_cast<int>(index),
                     static_cast<int>(attempt)};
    if (!IsFileName(key)) {
      dialed_.Send("failed", {{"text", "the attempt's name is none"}});
      return InvalidArgument("the attempt's name is none");
    }
    return store_.Add(&dialed_, key, message);
  }

  void End(const Status& status) {
    if (end_timer_ != 0) return;
    end_timer_ = loop_->After(Duration::zero(), [this, status] {
      const auto on_end = on_end_;
      on_end(status);
    });
  }

  net::Loop* const loop_;
  const std::function<void(const Status&)> on_end_;
  std::unique_ptr<CoordinatorConnection> connection_;
  DialedConnection dialed_{&connection_};
  OutputStore store_;
  bool finishing_ = false;
  std::optional<Status> over_;  // the connection was given up
  net::Loop::Id end_timer_ = 0;
};

}  // namespace

std::unique_ptr<OutputDownloader> OutputDownloader::Start(
    net::Loop* loop, const TransferOptions& line, std::function<void(const Status&)> on_end) {
  return std::make_unique<SocketOutputDownloader>(loop, line, std::move(on_end));
}

}  // namespace shoal::rendezvous
