#include "rendezvous/client.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "rendezvous/keeper.h"
#include "rendezvous/protocol.h"

namespace shoal::rendezvous {
namespace {

constexpr int64_t kTellKept = 64 << 10;
// How long a token that the disk does not give is read again, and how often.
constexpr auto kReadAgainFor = std::chrono::seconds(10);
constexpr auto kReadAgainPause = std::chrono::milliseconds(100);

Result<std::string> ReadOwnToken(const std::string& job_dir) {
  TRY(FaultPoint("client.token"));
  return ReadTokenFile(job_dir);
}

class LinkClient final : public Client {
 public:
  LinkClient(net::Loop* loop, ClientOptions options, ClientCallbacks callbacks)
      : loop_(loop),
        options_(std::move(options)),
        callbacks_(std::make_shared<ClientCallbacks>(std::move(callbacks))),
        seq_(options_.after_seq),
        offsets_(options_.log_offsets) {}

  ~LinkClient() override {
    loop_->Cancel(late_error_);
    loop_->Cancel(read_again_);
  }

  void Start() {
    if (!options_.keep.empty()) {
      auto keeper = Keeper::Open(options_.keep);
      if (!keeper.ok()) return FailLate(keeper.status());
      keeper_.emplace(std::move(*keeper));
      offsets_ = keeper_->offsets();
    }
    StartLink(RealClock::Get()->Now() + kReadAgainFor);
  }

  // A job does not fail for a disk that fails for a moment.
  void StartLink(TimePoint until) {
    read_again_ = 0;
    LinkOptions link;
    link.token = options_.token;
    if (link.token.empty()) {
      auto token = ReadOwnToken(options_.job_dir);
      if (token.status().code() == Code::kUnknown && RealClock::Get()->Now() < until) {
        read_again_ = loop_->After(kReadAgainPause, [this, until] { StartLink(until); });
        return;
      }
      if (!token.ok()) return FailLate(token.status());
      link.token = std::move(token).value();
    }
    link.give_up_after = options_.give_up_after;
    link.lives = options_.lives;
    link.find = options_.find;
    if (!link.find) link.find = [dir = options_.job_dir] { return ReadCoordinatorFile(dir); };

    LinkCallbacks calls;
    calls.hello = [this] { return Hello(); };
    calls.on_up = [this] { Up(); };
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
  void Hold(bool held, const std::string& reason) override {
    Tell("held", {{"held", held}, {"reason", reason}});
  }
  void AckVerdict() override { Tell("ack_verdict", {}); }

 private:
  json::object Hello() const {
    json::array offsets;
    for (const auto& [key, bytes] : offsets_) {
      offsets.push_back(
          {{"role", key.role}, {"index", key.index}, {"attempt", key.attempt}, {"bytes", bytes}});
    }
    json::object hello{{"kind", options_.controller ? "controller" : "observer"},
                       {"after_seq", seq_},
                       {"logs", keeper_ || (options_.logs && callbacks_->on_log != nullptr)},
                       {"offsets", std::move(offsets)}};
    if (keeper_) hello["journal"] = keeper_->journal_bytes();
    return hello;
  }

  // From the loop, as for a connection that cannot be made.
  void FailLate(const Status& why) {
    late_error_ = loop_->After(Duration::zero(), [callbacks = callbacks_, why] {
      const auto held = callbacks;
      held->on_closed(why);
    });
  }

  // ---- What is kept here ----

  // What cannot be kept must not be taken for kept: nothing more is heard then.
  void CannotKeep(const Status& why) {
    if (late_error_ != 0) return;
    FailLate(why.With("what the coordinator tells cannot be kept"));
  }

  void ReceivedJournal(std::string_view frame) {
    const auto part = DecodeJournalFrame(frame);
    if (!part.ok() || !keeper_) return;
    const Status kept = keeper_->Journal(part->offset, part->bytes);
    if (!kept.ok()) return CannotKeep(kept);
    link_->Send("journal_kept", {{"bytes", keeper_->journal_bytes()}});
  }

  // To a coordinator that has begun again with nothing.
  void SendJournal() {
    if (!keeper_) return;
    if (const Status cut = keeper_->CutJournal(); !cut.ok()) return CannotKeep(cut);
    for (int64_t at = 0; at < keeper_->journal_bytes();) {
      const auto bytes = keeper_->ReadJournal(at, kMaxJournalData);
      if (!bytes.ok() || bytes->empty()) return CannotKeep(bytes.status());
      link_->SendBinary(EncodeJournalFrame(at, *bytes));
      at += static_cast<int64_t>(bytes->size());
    }
    link_->Send("journal_sent", {{"bytes", keeper_->journal_bytes()}});
  }

  void KeepLog(const LogKey& key, int64_t offset, std::string_view bytes) {
    const Status kept = keeper_->Log(key, offset, bytes);
    if (!kept.ok()) return CannotKeep(kept);
    const int64_t end = offset + static_cast<int64_t>(bytes.size());
    int64_t& told = kept_told_[key];
    if (end - told < kTellKept) return;
    told = end;
    TellKept(key, end);
  }

  void TellKept(const LogKey& key, int64_t bytes) {
    link_->Send(
        "log_kept",
        {{"role", key.role}, {"index", key.index}, {"attempt", key.attempt}, {"bytes", bytes}});
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
    for (const auto& [key, told] : kept_told_) TellKept(key, offsets_[key]);
    for (const auto& [type, fields] : told_) link_->Send(type, fields);
    const auto callbacks = callbacks_;
    if (callbacks->on_connected) callbacks->on_connected();
  }

  void Received(const std::string& type, const json::object& message) {
    if (type == "want_journal") return SendJournal();
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
    if (keeper_ && event->type == JobEvent::Type::kTask && event->end) {
      const LogKey key{event->role, event->index, event->attempt};
      keeper_->LogEnded(key);
      kept_told_.erase(key);
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
    if (keeper_) KeepLog(log->key, offset, fresh);
    const auto callbacks = callbacks_;
    if (callbacks->on_log) callbacks->on_log(log->key, offset, fresh);
  }

  net::Loop* const loop_;
  const ClientOptions options_;
  // Shared, as a callback may destroy the client while it runs.
  const std::shared_ptr<ClientCallbacks> callbacks_;
  int64_t seq_;
  std::map<LogKey, int64_t> offsets_;
  std::optional<Keeper> keeper_;
  std::map<LogKey, int64_t> kept_told_;  // of logs that have not ended
  std::vector<std::pair<std::string, json::object>> told_;
  std::unique_ptr<Link> link_;
  net::Loop::Id late_error_ = 0;
  net::Loop::Id read_again_ = 0;
};

}  // namespace

std::unique_ptr<Client> Client::Connect(net::Loop* loop, ClientOptions options,
                                        ClientCallbacks callbacks) {
  auto client = std::make_unique<LinkClient>(loop, std::move(options), std::move(callbacks));
  client->Start();
  return client;
}

}  // namespace shoal::rendezvous
