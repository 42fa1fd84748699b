#include "rendezvous/protocol/coordinator_connection.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/file.h"
#include "base/id.h"
#include "job/execution/job_dir.h"
#include "net/websocket.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/protocol/pausable_clock.h"

namespace shoal::rendezvous {
namespace {

constexpr auto kFirstPause = std::chrono::milliseconds(1);
constexpr auto kLastPause = std::chrono::milliseconds(250);
constexpr int kQuickDials = 64;  // with the first pause, for a coordinator that is just starting
constexpr auto kLeastDial = std::chrono::milliseconds(500);
constexpr auto kAuthLimit = std::chrono::seconds(5);
constexpr auto kLeastSample = std::chrono::seconds(1);
// A coordinator that lives but does not answer is paused (SIGSTOP, a debugger): it is dialled so
// many times longer than one that is gone.
constexpr int kStoppedPatience = 20;

// States: dialling, proving, up, waiting for the next dial, given up. Each dial asks `find` again.
// Time in which this process was paused counts neither as the coordinator's silence nor against
// give_up_after (PausableClock).
class SocketCoordinatorConnection final : public CoordinatorConnection {
 public:
  SocketCoordinatorConnection(net::Loop* loop, CoordinatorConnectionOptions options,
                              CoordinatorConnectionCallbacks callbacks)
      : loop_(loop),
        options_(std::move(options)),
        callbacks_(std::make_shared<CoordinatorConnectionCallbacks>(std::move(callbacks))),
        time_(RealClock::Get(), 3 * std::max<Duration>(options_.heartbeat, kLeastSample)),
        lost_at_(time_.Now()) {
    SampleLater();
  }

  ~SocketCoordinatorConnection() override {
    loop_->Cancel(sample_timer_);
    loop_->Cancel(retry_timer_);
    loop_->Cancel(auth_timer_);
    loop_->Cancel(heartbeat_timer_);
  }

  void Dial() {
    auto address = options_.find();
    if (!address.ok()) return Failed(address.status());
    address_ = std::move(address).value();
    net::ConnectOptions to;
    to.host = address_.host;
    to.port = address_.port;
    to.path = kPath;
    to.limits.message_bytes = kMaxMessageDown;
    to.limits.handshake = std::clamp<Duration>(options_.give_up_after, kLeastDial, kAuthLimit);
    connecting_ = net::Connect(loop_, std::move(to), [this](auto socket) {
      connecting_.reset();
      if (!socket.ok()) return Failed(socket.status());
      Connected(std::move(socket).value());
    });
  }

  bool up() const override { return up_; }
  void Send(std::string_view type, json::object fields) override {
    if (up_) socket_->SendText(Message(type, std::move(fields)));
  }
  void SendBinary(std::string frame) override {
    if (up_) socket_->SendBinary(std::move(frame));
  }
  size_t queued_bytes() const override { return socket_ ? socket_->queued_bytes() : 0; }
  const CoordinatorAddress& address() const override { return address_; }

 private:
  void Connected(std::unique_ptr<net::WebSocket> socket) {
    socket_ = std::move(socket);
    client_nonce_.clear();
    auth_timer_ = loop_->After(kAuthLimit, [this] {
      Failed(DeadlineExceeded(options_.who + " did not finish its greeting in time"));
    });
    socket_->Start([this](std::string_view bytes, bool text) { Received(bytes, text); },
                   [this](const Status& status) { Closed(status); });
  }

  void Closed(const Status& status) {
    const std::string reason = socket_->close_reason();
    if (reason == "ended") return GiveUp(Status::Ok());
    if (!reason.empty()) return Failed(Unavailable(options_.who + " closed: " + reason));
    Failed(status.ok() ? Unavailable(options_.who + " closed the connection") : status);
  }

  void Received(std::string_view bytes, bool text) {
    heard_at_ = time_.Now();
    if (!text) {
      const auto callbacks = callbacks_;
      if (up_ && callbacks->on_binary) callbacks->on_binary(bytes);
      return;
    }
    std::string type;
    auto message = ParseMessage(bytes, &type);
    if (!message.ok()) return Failed(message.status().With("a message of " + options_.who));
    if (up_) {
      const auto callbacks = callbacks_;
      if (type != "heartbeat") callbacks->on_message(type, *message);
    } else {
      Greet(type, *message);
    }
  }

  // Nothing received before both proofs has an effect.
  void Greet(const std::string& type, const json::object& message) {
    if (type == "challenge" && client_nonce_.empty()) {
      server_nonce_ = GetStringOr(message, "nonce", "");
      if (GetIntOr(message, "protocol", 0) != kProtocolVersion || !IsHex64(server_nonce_)) {
        return GiveUp(FailedPrecondition(options_.who + " speaks another version of the protocol"));
      }
      client_nonce_ = RandomHex(32);
      socket_->SendText(
          Message("proof", {{"protocol", kProtocolVersion},
                            {"nonce", client_nonce_},
                            {"proof", ClientProof(options_.token, server_nonce_, client_nonce_)},
                            {"hello", callbacks_->hello()}}));
    } else if (type == "accepted" && !client_nonce_.empty()) {
      const std::string proof = GetStringOr(message, "proof", "");
      const std::string expected = ServerProof(options_.token, server_nonce_, client_nonce_);
      if (!EqualInConstantTime(proof, expected)) {
        return Failed(
            Unauthenticated("the process that answers is not " + options_.who + " of this job"));
      }
      GoUp();
    } else if (type == "error") {
      const std::string text = CleanText(GetStringOr(message, "text", "refused"), 500);
      const bool token = GetStringOr(message, "code", "") == "unauthenticated";
      const Status error = token ? Unauthenticated(text) : FailedPrecondition(text);
      // After this job's coordinator was reached once, a refusal comes from another one on its old
      // port.
      if (token && !was_up_) return GiveUp(error);
      Failed(error);
    } else {
      Failed(FailedPrecondition("the greeting of " + options_.who + " is out of order"));
    }
  }

  void GoUp() {
    loop_->Cancel(std::exchange(auth_timer_, 0));
    up_ = was_up_ = true;
    dials_ = 0;
    pause_ = kFirstPause;
    BeatLater();
    const auto callbacks = callbacks_;
    socket_->OnDrain([callbacks] {
      const auto held = callbacks;
      if (held->on_drain) held->on_drain();
    });
    if (callbacks->on_up) callbacks->on_up();
  }

  // While this process is paused, the other side does not count as silent or away.
  void SampleLater() {
    sample_timer_ = loop_->After(options_.heartbeat, [this] {
      (void)time_.Now();
      SampleLater();
    });
  }

  void BeatLater() {
    heartbeat_timer_ = loop_->After(options_.heartbeat, [this] {
      if (time_.Now() - heard_at_ > options_.silence) {
        return Failed(Unavailable("nothing was heard of " + options_.who + " for " +
                                  FormatDuration(options_.silence)));
      }
      Send("heartbeat", callbacks_->heartbeat ? callbacks_->heartbeat() : json::object());
      BeatLater();
    });
  }

  void Disconnect() {
    loop_->Cancel(std::exchange(auth_timer_, 0));
    loop_->Cancel(std::exchange(heartbeat_timer_, 0));
    loop_->Cancel(std::exchange(retry_timer_, 0));
    connecting_.reset();
    socket_.reset();
    up_ = false;
  }

  void Failed(const Status& why) {
    const auto now = time_.Now();
    const bool was = up_;
    if (was) lost_at_ = now;
    Disconnect();
    const Duration patience =
        was_up_ ? options_.give_up_after : std::max(options_.give_up_after, options_.at_first);
    const Duration away = now - lost_at_;
    if (away >= patience && (away >= kStoppedPatience * patience || !Lives(why)))
      return GiveUp(why);
    if (++dials_ > kQuickDials) pause_ = std::min<Duration>(pause_ * 2, kLastPause);
    retry_timer_ = loop_->After(pause_, [this] { Dial(); });
    const auto callbacks = callbacks_;
    if (was && callbacks->on_down) callbacks->on_down(why);
  }

  // Its host accepts connections though it sends nothing, or its process is known to live.
  bool Lives(const Status& why) const {
    if (was_up_ && why.code() == Code::kDeadlineExceeded) return true;
    return options_.lives && options_.lives();
  }

  void GiveUp(const Status& why) {
    Disconnect();
    const auto callbacks = callbacks_;
    // From the loop, as Start promises.
    retry_timer_ = loop_->After(Duration::zero(), [callbacks, why] {
      const auto held = callbacks;
      const Status reason = why;
      held->on_given_up(reason);
    });
  }

  net::Loop* const loop_;
  const CoordinatorConnectionOptions options_;
  // Shared, as a callback may destroy the CoordinatorConnection while it runs.
  const std::shared_ptr<CoordinatorConnectionCallbacks> callbacks_;
  CoordinatorAddress address_;
  std::unique_ptr<net::Connecting> connecting_;
  std::unique_ptr<net::WebSocket> socket_;
  std::string server_nonce_;
  std::string client_nonce_;
  bool up_ = false;
  bool was_up_ = false;
  int dials_ = 0;
  Duration pause_ = kFirstPause;
  PausableClock time_;
  TimePoint lost_at_;
  TimePoint heard_at_;
  net::Loop::Id sample_timer_ = 0;
  net::Loop::Id retry_timer_ = 0;
  net::Loop::Id auth_timer_ = 0;
  net::Loop::Id heartbeat_timer_ = 0;
};

}  // namespace

Result<CoordinatorAddress> ReadCoordinatorFile(const std::string& job_dir) {
  const std::string path = job::JobDir(job_dir).coordinator().string();
  auto text = ReadFile(path, 65'536);
  if (!text.ok())
    return Unavailable("the coordinator has not come up yet: " + text.status().message());
  auto object = ParseJsonObject(*text);
  if (!object.ok()) return Unavailable(path + ": " + object.status().message());
  const int64_t port = GetIntOr(*object, "port", 0);
  CoordinatorAddress address{GetStringOr(*object, "host", ""), static_cast<uint16_t>(port)};
  if (address.host.empty() || port < 1 || port > std::numeric_limits<uint16_t>::max()) {
    return Unavailable(path + " names no address");
  }
  return address;
}

Status WriteCoordinatorFile(const std::string& job_dir, const CoordinatorAddress& address,
                            WallTime started) {
  const json::object where{{"host", address.host},
                           {"port", address.port},
                           {"pid", ::getpid()},
                           {"started", FormatWall(started)}};
  return WriteFileAtomically(job::JobDir(job_dir).coordinator(), ToText(where) + "\n", 0600, false);
}

Result<std::string> ReadTokenFile(const std::string& job_dir) {
  TRY_ASSIGN(std::string token, ReadFile(job::JobDir(job_dir).token(), 4096));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (token.empty()) return FailedPrecondition(job_dir + "/token is empty");
  return token;
}

std::unique_ptr<CoordinatorConnection> CoordinatorConnection::Start(
    net::Loop* loop, CoordinatorConnectionOptions options,
    CoordinatorConnectionCallbacks callbacks) {
  auto connection =
      std::make_unique<SocketCoordinatorConnection>(loop, std::move(options), std::move(callbacks));
  connection->Dial();
  return connection;
}

}  // namespace shoal::rendezvous
