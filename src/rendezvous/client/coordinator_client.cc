#include "rendezvous/client/coordinator_client.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/access/directory_owner.h"
#include "base/clock.h"
#include "base/fault_injection.h"
#include "base/log.h"
#include "rendezvous/client/journal_mirror.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

constexpr int64_t kLogAckBytes = 64 << 10;
// How long, and how often, reading the token is retried when the disk fails.
constexpr auto kTokenRetryFor = std::chrono::seconds(10);
constexpr auto kTokenRetryPause = std::chrono::milliseconds(100);

Result<std::string> ReadJobToken(const std::string& job_dir) {
  TRY(FaultPoint("client.token"));
  const FileAccessAs owner(job_dir);
  return ReadTokenFile(job_dir);
}

// Keeps one CoordinatorConnection and remembers what was delivered, so that a reconnection
// continues: the last event's number and the length of every log. In no-shared-filesystem mode both
// come from the mirror. A callback may destroy the client.
class SocketCoordinatorClient final : public CoordinatorClient {
 public:
  SocketCoordinatorClient(net::Loop* loop, CoordinatorClientOptions options,
                          CoordinatorClientCallbacks callbacks)
      : loop_(loop),
        options_(std::move(options)),
        callbacks_(std::make_shared<CoordinatorClientCallbacks>(std::move(callbacks))),
        seq_(options_.after_seq),
        offsets_(options_.log_offsets) {}

  ~SocketCoordinatorClient() override {
    loop_->Cancel(fail_timer_);
    loop_->Cancel(token_retry_timer_);
  }

  void Start() {
    if (!options_.mirror_dir.empty()) {
      auto mirror = JournalMirror::Open(options_.mirror_dir);
      if (!mirror.ok()) return FailAsync(mirror.status());
      mirror_.emplace(std::move(*mirror));
      offsets_ = mirror_->offsets();
    }
    OpenConnection(RealClock::Get()->Now() + kTokenRetryFor);
  }

  // A momentary disk error must not fail the job.
  void OpenConnection(TimePoint until) {
    token_retry_timer_ = 0;
    CoordinatorConnectionOptions connection_options;
    connection_options.token = options_.token;
    if (connection_options.token.empty()) {
      auto token = ReadJobToken(options_.job_dir);
      if (token.status().code() == Code::kUnknown && RealClock::Get()->Now() < until) {
        token_retry_timer_ =
            loop_->After(kTokenRetryPause, [this, until] { OpenConnection(until); });
        return;
      }
      if (!token.ok()) return FailAsync(token.status());
      connection_options.token = std::move(token).value();
    }
    connection_options.give_up_after = options_.give_up_after;
    connection_options.lives = options_.lives;
    connection_options.find = options_.find;
    if (!connection_options.find)
      connection_options.find = [dir = options_.job_dir] { return ReadCoordinatorFile(dir); };

    CoordinatorConnectionCallbacks calls;
    calls.hello = [this] { return Hello(); };
    calls.on_up = [this] { OnConnected(); };
    calls.on_message = [this](const std::string& type, const json::object& message) {
      Received(type, message);
    };
    calls.on_binary = [this](std::string_view frame) {
      if (IsJournalFrame(frame)) return ReceivedJournal(frame);
      ReceivedLog(frame);
    };
    calls.on_given_up = [callbacks = callbacks_](const Status& why) {
      const auto held = callbacks;
      held->on_closed(why);
    };
    connection_ =
        CoordinatorConnection::Start(loop_, std::move(connection_options), std::move(calls));
  }

  bool connected() const override { return connection_ && connection_->up(); }
  void Drain(const std::string& reason) override { SendStopCommand("drain", reason); }
  void Stop(const std::string& reason) override { SendStopCommand("stop", reason); }
  void Kill(const std::string& reason) override { SendStopCommand("kill", reason); }
  void Suspend(const std::string& reason) override { SendStopCommand("suspend", reason); }
  void Scale(const std::string& role, int replicas, const std::string& reason) override {
    SendPersistent("scale", {{"role", role}, {"replicas", replicas}, {"reason", reason}});
  }
  void ReportLost(const std::string& role, int index, int incarnation,
                  const std::string& reason) override {
    SendPersistent(
        "lost",
        {{"role", role}, {"index", index}, {"incarnation", incarnation}, {"reason", reason}});
  }
  void ReportRefused(const std::string& role, int index, const std::string& reason) override {
    SendPersistent("refused", {{"role", role}, {"index", index}, {"reason", reason}});
  }
  void Hold(bool held, const std::string& reason) override {
    SendPersistent("held", {{"held", held}, {"reason", reason}});
  }
  void AckVerdict() override { SendPersistent("ack_verdict", {}); }

 private:
  json::object Hello() const {
    json::array offsets;
    for (const auto& [key, bytes] : offsets_) {
      offsets.push_back(
          {{"role", key.role}, {"index", key.index}, {"attempt", key.attempt}, {"bytes", bytes}});
    }
    json::object hello{{"kind", options_.controller ? "controller" : "observer"},
                       {"after_seq", seq_},
                       {"logs", mirror_ || (options_.logs && callbacks_->on_log != nullptr)},
                       {"offsets", std::move(offsets)}};
    if (options_.epoch > 0) hello["epoch"] = options_.epoch;
    if (mirror_) hello["journal"] = mirror_->journal_bytes();
    return hello;
  }

  // From the loop, as for a connection that cannot be made.
  void FailAsync(const Status& why) {
    fail_timer_ = loop_->After(Duration::zero(), [callbacks = callbacks_, why] {
      const auto held = callbacks;
      held->on_closed(why);
    });
  }

  // ---- What is stored here ----

  // After an error nothing more is accepted: an acknowledged byte must be stored.
  void FailMirror(const Status& why) {
    if (fail_timer_ != 0) return;
    FailAsync(why.With("cannot mirror what the coordinator sends"));
  }

  void ReceivedJournal(std::string_view frame) {
    const auto part = DecodeJournalFrame(frame);
    if (!part.ok() || !mirror_) return;
    const Status stored = mirror_->AppendJournal(part->offset, part->bytes);
    if (!stored.ok()) return FailMirror(stored);
    connection_->Send("journal_kept", {{"bytes", mirror_->journal_bytes()}});
  }

  // To a coordinator that has started again with an empty directory.
  void SendJournal() {
    if (!mirror_) return;
    if (const Status cut = mirror_->TruncateTornTail(); !cut.ok()) return FailMirror(cut);
    for (int64_t at = 0; at < mirror_->journal_bytes();) {
      const auto bytes = mirror_->ReadJournal(at, kMaxJournalData);
      if (!bytes.ok() || bytes->empty()) return FailMirror(bytes.status());
      connection_->SendBinary(EncodeJournalFrame(at, *bytes));
      at += static_cast<int64_t>(bytes->size());
    }
    connection_->Send("journal_sent", {{"bytes", mirror_->journal_bytes()}});
  }

  void MirrorLog(const LogKey& key, int64_t offset, std::string_view bytes) {
    const Status stored = mirror_->AppendLog(key, offset, bytes);
    if (!stored.ok()) return FailMirror(stored);
    const int64_t end = offset + static_cast<int64_t>(bytes.size());
    int64_t& entry = log_acked_[key];
    if (end - entry < kLogAckBytes) return;
    entry = end;
    SendLogMirrored(key, end);
  }

  void SendLogMirrored(const LogKey& key, int64_t bytes) {
    connection_->Send(
        "log_kept",
        {{"role", key.role}, {"index", key.index}, {"attempt", key.attempt}, {"bytes", bytes}});
  }

  void SendStopCommand(const char* mode, const std::string& reason) {
    SendPersistent("command", {{"mode", mode}, {"reason", reason}});
  }

  // Sent now and again on each connection, as the last connection may have lost it (the coordinator
  // ignores repetitions).
  void SendPersistent(std::string type, json::object fields) {
    if (connection_) connection_->Send(type, fields);
    persistent_.emplace_back(std::move(type), std::move(fields));
  }

  void OnConnected() {
    for (const auto& [key, entry] : log_acked_) SendLogMirrored(key, offsets_[key]);
    for (const auto& [type, fields] : persistent_) connection_->Send(type, fields);
    const auto callbacks = callbacks_;
    if (callbacks->on_connected) callbacks->on_connected();
  }

  void Received(const std::string& type, const json::object& message) {
    if (type == "want_journal") return SendJournal();
    if (type == "superseded") {  // for good: its epoch only grows
      FailAsync(Aborted("another server leads"));
      return connection_.reset();
    }
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
    if (mirror_ && event->type == JobEvent::Type::kTask && event->end) {
      const LogKey key{event->role, event->index, event->attempt};
      mirror_->CloseLog(key);
      log_acked_.erase(key);
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
    if (mirror_) MirrorLog(log->key, offset, fresh);
    const auto callbacks = callbacks_;
    if (callbacks->on_log) callbacks->on_log(log->key, offset, fresh);
  }

  net::Loop* const loop_;
  const CoordinatorClientOptions options_;
  // Shared, as a callback may destroy the client while it runs.
  const std::shared_ptr<CoordinatorClientCallbacks> callbacks_;
  int64_t seq_;
  std::map<LogKey, int64_t> offsets_;
  std::optional<JournalMirror> mirror_;
  std::map<LogKey, int64_t> log_acked_;  // of logs that have not ended
  std::vector<std::pair<std::string, json::object>> persistent_;
  std::unique_ptr<CoordinatorConnection> connection_;
  net::Loop::Id fail_timer_ = 0;
  net::Loop::Id token_retry_timer_ = 0;
};

}  // namespace

std::unique_ptr<CoordinatorClient> CoordinatorClient::Connect(
    net::Loop* loop, CoordinatorClientOptions options, CoordinatorClientCallbacks callbacks) {
  auto client =
      std::make_unique<SocketCoordinatorClient>(loop, std::move(options), std::move(callbacks));
  client->Start();
  return client;
}

}  // namespace shoal::rendezvous
