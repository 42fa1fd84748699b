#include "rendezvous/protocol/connection.h"

#include <utility>

#include "base/id.h"
#include "base/log.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

constexpr auto kAuthLimit = std::chrono::seconds(5);

// States: challenge sent, proof checked, proved. Until the proof only kAuthLimit keeps the
// connection open, and nothing it sends reaches the callbacks.
class SocketConnection final : public Connection {
 public:
  SocketConnection(net::Loop* loop, std::unique_ptr<net::WebSocket> socket, std::string token,
                   Callbacks callbacks)
      : loop_(loop),
        socket_(std::move(socket)),
        token_(std::move(token)),
        callbacks_(std::make_shared<Callbacks>(std::move(callbacks))),
        nonce_(RandomHex(32)) {}

  ~SocketConnection() override { loop_->Cancel(timer_); }

  void Start() {
    timer_ = loop_->After(kAuthLimit,
                          [this] { Refuse("deadline", "the token was not proved within 5 s"); });
    socket_->Start([this](std::string_view bytes, bool text) { Received(bytes, text); },
                   [callbacks = callbacks_](const Status&) {
                     const auto held = callbacks;
                     held->on_gone();
                   });
    socket_->SendText(Message("challenge", {{"protocol", kProtocolVersion}, {"nonce", nonce_}}));
  }

  void Send(std::string_view type, json::object fields) override {
    socket_->SendText(Message(type, std::move(fields)));
  }
  void SendShared(std::shared_ptr<const std::string> bytes, bool text) override {
    socket_->SendShared(std::move(bytes), text);
  }
  void SendBinary(std::string frame) override { socket_->SendBinary(std::move(frame)); }
  size_t queued_bytes() const override { return socket_->queued_bytes(); }
  void OnDrain(std::function<void()> fn) override { socket_->OnDrain(std::move(fn)); }
  void Close(std::string_view reason) override {
    closed_ = true;
    socket_->Close(reason);
  }
  const std::string& address() const override { return socket_->peer(); }

 private:
  void Refuse(const char* code, const std::string& text) {
    if (closed_) return;
    LogWarning("refused a connection from {}: {}", socket_->peer(), text);
    Send("error", {{"code", code}, {"text", text}});
    Close(text);
  }

  void Received(std::string_view bytes, bool text) {
    if (closed_) return;
    const auto callbacks = callbacks_;
    if (!text) {
      if (!proved_) return Refuse("protocol", "a binary message came before the proof");
      callbacks->on_binary(bytes);
      return;
    }
    std::string type;
    auto message = ParseMessage(bytes, &type);
    if (!message.ok()) return Refuse("protocol", "bad message: " + message.status().message());
    if (proved_) {
      callbacks->on_message(type, *message);
    } else {
      Check(type, *message);
    }
  }

  void Check(const std::string& type, const json::object& message) {
    if (type != "proof") return Refuse("protocol", "the first message must be the proof");
    if (GetIntOr(message, "protocol", 0) != kProtocolVersion) {
      return Refuse("protocol", "this coordinator speaks version 1 of the protocol");
    }
    const std::string nonce = GetStringOr(message, "nonce", "");
    const std::string proof = GetStringOr(message, "proof", "");
    const json::value* hello = message.if_contains("hello");
    if (!IsHex64(nonce) || hello == nullptr || !hello->is_object()) {
      return Refuse("protocol", "the proof lacks a nonce or a hello");
    }
    if (!EqualInConstantTime(proof, ClientProof(token_, nonce_, nonce))) {
      return Refuse("unauthenticated",
                    "wrong token: this is the coordinator of a job with another token");
    }
    loop_->Cancel(std::exchange(timer_, 0));
    proved_ = true;
    Send("accepted", {{"proof", ServerProof(token_, nonce_, nonce)}});
    const auto callbacks = callbacks_;
    callbacks->on_proved(hello->get_object());
  }

  net::Loop* const loop_;
  std::unique_ptr<net::WebSocket> socket_;
  const std::string token_;
  // Shared, as a callback may destroy the connection while it runs.
  const std::shared_ptr<Callbacks> callbacks_;
  const std::string nonce_;
  net::Loop::Id timer_ = 0;
  bool proved_ = false;
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<Connection> Connection::Greet(net::Loop* loop,
                                              std::unique_ptr<net::WebSocket> socket,
                                              const std::string& token, Callbacks callbacks) {
  auto connection =
      std::make_unique<SocketConnection>(loop, std::move(socket), token, std::move(callbacks));
  connection->Start();
  return connection;
}

}  // namespace shoal::rendezvous
