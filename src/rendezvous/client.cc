#include "rendezvous/client.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "rendezvous/protocol.h"

namespace shoal::rendezvous {
namespace {

class LinkClient final : public Client {
 public:
  LinkClient(net::Loop* loop, ClientOptions options, ClientCallbacks callbacks)
      : loop_(loop),
        options_(std::move(options)),
        callbacks_(std::make_shared<ClientCallbacks>(std::move(callbacks))),
        seq_(options_.after_seq),
        offsets_(options_.log_offsets) {}

  ~LinkClient() override { loop_->Cancel(late_error_); }

  void Start() {
    LinkOptions link;
    link.token = options_.token;
    if (link.token.empty()) {
      auto token = ReadTokenFile(options_.job_dir);
      if (!token.ok()) {
        late_error_ =
            loop_->After(Duration::zero(), [callbacks = callbacks_, error = token.status()] {
              const auto held = callbacks;
              held->on_closed(error);
            });
        return;
      }
      link.token = std::move(token).value();
    }
    link.give_up_after = options_.give_up_after;
    link.find = options_.find;
    if (!link.find) link.find = [dir = options_.job_dir] { return ReadCoordinatorFile(dir); };

    LinkCallbacks calls;
    calls.hello = [this] { return Hello(); };
    calls.on_up = [this] { Up(); };
    calls.on_message = [this](const std::string& type, const json::object& message) {
      Received(type, message);
    };
    calls.on_binary = [this](std::string_view frame) { ReceivedLog(frame); };
    calls.on_given_up = [callbacks = callbacks_](const Status& why) {
      const auto held = callbacks;
      held->on_closed(why);
    };
    link_ = Link::Start(loop_, std::move(link), std::move(calls));
  }

  bool connected() const override { return link_ && link_->up(); }
  void Drain(const std::string& reason) override { Order("drain", reason); }
  void Stop(const std::string& reason) override { Order("stop", reason); }
  void Kill(const std::string& reason) override { Order("kill", reason); }
  void Suspend(const std::string& reason) override { Order("suspend", reason); }
  void Scale(const std::string& role, int replicas, const std::string& reason) override {
    Tell("scale", {{"role", role}, {"replicas", replicas}, {"reason", reason}});
  }
  void ReportLost(const std::string& role, int index, int incarnation,
                  const std::string& reason) override {
    Tell("lost",
         {{"role", role}, {"index", index}, {"incarnation", incarnation}, {"reason", reason}});
  }
  void ReportRefused(const std::string& role, int index, const std::string& reason) override {
    Tell("refused", {{"role", role}, {"index", index}, {"reason", reason}});
  }
  void AckVerdict() override { Tell("ack_verdict", {}); }

 private:
  json::object Hello() const {
    json::array offsets;
    for (const auto& [key, bytes] : offsets_) {
      offsets.push_back(
          {{"role", key.role}, {"index", key.index}, {"attempt", key.attempt}, {"bytes", bytes}});
    }
    return {{"kind", options_.controller ? "controller" : "observer"},
            {"after_seq", seq_},
            {"logs", options_.logs && callbacks_->on_log != nullptr},
            {"offsets", std::move(offsets)}};
  }

  void Order(const char* mode, const std::string& reason) {
    Tell("command", {{"mode", mode}, {"reason", reason}});
  }

  // Kept until the next connection; told again on each, as the last may have been lost on the way
  // (the coordinator takes repetitions for what they are).
  void Tell(std::string type, json::object fields) {
    if (link_) link_->Send(type, fields);
    told_.emplace_back(std::move(type), std::move(fields));
  }

  void Up() {
    for (const auto& [type, fields] : told_) link_->Send(type, fields);
    const auto callbacks = callbacks_;
    if (callbacks->on_connected) callbacks->on_connected();
  }

  void Received(const std::string& type, const json::object& message) {
    if (type != "event") return;
    auto event = EventFromJson(message);
    if (!event.ok()) {
      LogWarning("an event of the coordinator was not understood: {}", event.status().message());
      return;
    }
    if (event->seq > 0) {
      if (event->seq <= seq_) return;
      seq_ = event->seq;
    }
    const auto callbacks = callbacks_;
    if (callbacks->on_event) callbacks->on_event(*event);
  }

  void ReceivedLog(std::string_view frame) {
    auto log = DecodeLogFrame(frame);
    if (!log.ok()) {
      LogWarning("a log frame of the coordinator was not understood: {}", log.status().message());
      return;
    }
    int64_t& known = offsets_[log->key];
    const int64_t end = log->offset + static_cast<int64_t>(log->bytes.size());
    if (log->offset > known || end <= known) return;
    const auto fresh = log->bytes.substr(static_cast<size_t>(known - log->offset));
    const int64_t offset = std::exchange(known, end);
    const auto callbacks = callbacks_;
    if (callbacks->on_log) callbacks->on_log(log->key, offset, fresh);
  }

  net::Loop* const loop_;
  const ClientOptions options_;
  // Shared, as a callback may destroy the client while it runs.
  const std::shared_ptr<ClientCallbacks> callbacks_;
  int64_t seq_;
  std::map<LogKey, int64_t> offsets_;
  std::vector<std::pair<std::string, json::object>> told_;
  std::unique_ptr<Link> link_;
  net::Loop::Id late_error_ = 0;
};

}  // namespace

std::unique_ptr<Client> Client::Connect(net::Loop* loop, ClientOptions options,
                                        ClientCallbacks callbacks) {
  auto client = std::make_unique<LinkClient>(loop, std::move(options), std::move(callbacks));
  client->Start();
  return client;
}

}  // namespace shoal::rendezvous
