#include "net/http/server_websocket.h"

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "base/mutex.h"

namespace shoal::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = beast::websocket;
using boost::system::error_code;

constexpr auto kCloseTime = std::chrono::seconds(2);
constexpr size_t kKeepBuffer = 64 << 10;  // of a message, kept for the next
constexpr uint16_t kLost = 1006;

// A read or write of Beast's that waits.
class Waiting {
 public:
  virtual ~Waiting() = default;
  virtual void Complete(error_code error, size_t bytes, bool post) = 0;
};

template <typename Handler>
class WaitingHandler final : public Waiting {
 public:
  WaitingHandler(Handler handler, asio::io_context* context)
      : handler_(std::move(handler)), context_(context) {}
  void Complete(error_code error, size_t bytes, bool post) override {
    auto bound = beast::bind_front_handler(std::move(handler_), error, bytes);
    if (post) {
      asio::post(*context_, std::move(bound));
    } else {
      asio::dispatch(*context_, std::move(bound));
    }
  }

 private:
  Handler handler_;
  asio::io_context* const context_;
};

// A transport as Beast's WebSocket reads and writes it. One read and one write at a time.
class TransportBytes final : public ServerTransport::User {
 public:
  TransportBytes(std::shared_ptr<ServerTransport> transport, std::string early, const Clock* clock)
      : transport_(std::move(transport)),
        early_(std::move(early)),
        clock_(clock),
        heard_(clock->Now()) {}

  asio::io_context& context() const { return transport_->loop()->context(); }
  // When something came.
  TimePoint heard() const { return heard_; }
  ServerTransport* transport() const { return transport_.get(); }

  void BeginRead(asio::mutable_buffer to, std::unique_ptr<Waiting> read) {
    if (to.size() == 0 || !early_.empty()) {
      const size_t bytes = std::min(to.size(), early_.size());
      if (bytes > 0) std::memcpy(to.data(), early_.data(), bytes);
      early_.erase(0, bytes);
      return read->Complete({}, bytes, true);
    }
    if (error_) return read->Complete(error_, 0, true);
    to_ = to;
    read_ = std::move(read);
    transport_->Read();
  }

  void BeginWrite(std::string bytes, std::unique_ptr<Waiting> write) {
    if (error_) return write->Complete(error_, 0, true);
    const size_t size = bytes.size();
    transport_->Send(std::move(bytes));
    if (transport_->queued_bytes() == 0) return write->Complete({}, size, true);
    written_ = size;
    write_ = std::move(write);
  }

  // Both that wait end, and all later ones.
  void Fail(error_code error) {
    if (!error_) error_ = error;
    if (auto read = std::move(read_)) read->Complete(error_, 0, true);
    if (auto write = std::move(write_)) write->Complete(error_, 0, true);
  }

  void OnBytes(std::string_view bytes) override {
    heard_ = clock_->Now();
    auto read = std::move(read_);
    if (read == nullptr) {
      early_.append(bytes);
      return;
    }
    const size_t size = std::min(to_.size(), bytes.size());
    std::memcpy(to_.data(), bytes.data(), size);
    early_.assign(bytes.substr(size));
    read->Complete({}, size, false);
  }
  void OnEnd(bool orderly) override {
    Fail(orderly ? error_code(asio::error::eof) : error_code(asio::error::connection_reset));
  }
  void OnSent() override {
    if (transport_->queued_bytes() > 0) return;
    if (auto write = std::move(write_)) write->Complete({}, written_, false);
  }

 private:
  const std::shared_ptr<ServerTransport> transport_;
  std::string early_;  // come, not asked for yet
  const Clock* const clock_;
  TimePoint heard_;
  error_code error_;
  asio::mutable_buffer to_;
  std::unique_ptr<Waiting> read_;
  std::unique_ptr<Waiting> write_;
  size_t written_ = 0;
};

// Beast's next layer.
class TransportLayer {
 public:
  using executor_type = asio::io_context::executor_type;
  explicit TransportLayer(std::shared_ptr<TransportBytes> bytes) : bytes_(std::move(bytes)) {}
  executor_type get_executor() const { return bytes_->context().get_executor(); }
  TransportBytes& bytes() { return *bytes_; }

  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    asio::mutable_buffer first;
    for (const asio::mutable_buffer one : beast::buffers_range_ref(buffers)) {
      first = one;
      if (first.size() > 0) break;
    }
    return asio::async_initiate<Token, void(error_code, size_t)>(
        [](auto handler, std::shared_ptr<TransportBytes> bytes, asio::mutable_buffer to) {
          auto* const context = &bytes->context();
          bytes->BeginRead(
              to, std::make_unique<WaitingHandler<decltype(handler)>>(std::move(handler), context));
        },
        token, bytes_, first);
  }

  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    std::string all;
    for (const asio::const_buffer one : beast::buffers_range_ref(buffers))
      all.append(static_cast<const char*>(one.data()), one.size());
    return asio::async_initiate<Token, void(error_code, size_t)>(
        [](auto handler, std::shared_ptr<TransportBytes> bytes, std::string text) {
          auto* const context = &bytes->context();
          bytes->BeginWrite(std::move(text), std::make_unique<WaitingHandler<decltype(handler)>>(
                                                 std::move(handler), context));
        },
        token, bytes_, std::move(all));
  }

 private:
  std::shared_ptr<TransportBytes> bytes_;
};

// Beast finds these by their argument.
template <typename Handler>
void async_teardown(beast::role_type, TransportLayer& layer, Handler&& handler) {
  layer.bytes().transport()->EndWriting();
  asio::post(layer.get_executor(),
             beast::bind_front_handler(std::forward<Handler>(handler), error_code()));
}
void beast_close_socket(TransportLayer& layer) { layer.bytes().transport()->Close(); }

using Stream = websocket::stream<TransportLayer, true>;

class BeastServerWebSocket final : public ServerWebSocket,
                                   public std::enable_shared_from_this<BeastServerWebSocket> {
 public:
  explicit BeastServerWebSocket(std::shared_ptr<ServerConnection> connection)
      : connection_(std::move(connection)),
        most_queued_(connection_->core()->options.limits.queued_bytes) {}

  void Start(std::shared_ptr<ServerTransport> transport, const HttpServerRequest& request,
             const std::string& protocol, std::string early) override {
    bytes_ = std::make_shared<TransportBytes>(transport, std::move(early),
                                              connection_->core()->options.clock);
    transport->SetUser(bytes_);
    stream_ = std::make_unique<Stream>(TransportLayer(bytes_));
    Configure(protocol);
    http::request<http::empty_body> upgrade(http::verb::get, request.target, 11);
    for (const auto& [name, value] : request.headers) upgrade.insert(name, value);
    stream_->async_accept(upgrade, [self = shared_from_this()](error_code error) {
      if (error) return self->End(kLost, error.message());
      self->open_ = true;
      self->ReadNext();
      self->Pump();
    });
  }

  void CheckDeadlines(TimePoint now) override {
    if (ended_) return;
    if (close_sent_ && now - *close_sent_ > kCloseTime) return End(kLost, "no answer to a close");
    if (!open_ || !reading_ || close_sent_) return;
    const TimePoint heard = std::max(bytes_->heard(), reading_since_);
    const Duration interval = connection_->core()->options.limits.ping_interval;
    if (now - heard > 2 * interval) return End(kLost, "no ping was answered");
    if (now - std::max(heard, pinged_) < interval || std::exchange(pinging_, true)) return;
    pinged_ = now;
    stream_->async_ping({}, [self = shared_from_this()](error_code) { self->pinging_ = false; });
  }

  void EndFromServer() override { End(kLost, "the connection was closed"); }

  bool Send(std::string text) override {
    return SendShared(std::make_shared<const std::string>(std::move(text)));
  }

  bool SendShared(std::shared_ptr<const std::string> text) override {
    const MutexLock lock(mu_);
    if (closed_ || closing_) return false;
    if (queued_ + text->size() > most_queued_) {
      connection_->port()->Post([connection = connection_] { connection->Close(); });
      return false;
    }
    queued_ += text->size();
    out_.push_back(std::move(text));
    PostPump();
    return true;
  }

  size_t queued_bytes() const override {
    const MutexLock lock(mu_);
    return queued_;
  }

  void OnMessage(std::function<void(std::string_view bytes, bool text)> fn) override {
    const MutexLock lock(mu_);
    if (closed_) return;
    callbacks_.message = std::make_shared<decltype(fn)>(std::move(fn));
    connection_->port()->Post([self = shared_from_this()] { self->ReadNext(); });
  }

  void OnDrained(std::function<void()> fn) override {
    const MutexLock lock(mu_);
    if (!closed_) callbacks_.drained = std::move(fn);
  }

  void OnClosed(std::function<void(uint16_t code, std::string reason)> fn) override {
    {
      const MutexLock lock(mu_);
      if (!closed_) {
        callbacks_.closed = std::move(fn);
        return;
      }
    }
    const auto call = [fn, end = end_] { fn(end.first, end.second); };
    if (!connection_->port()->Post(call)) call();
  }

  void Close(uint16_t code, std::string_view reason) override {
    const MutexLock lock(mu_);
    if (closed_ || std::exchange(closing_, true)) return;
    our_reason_ = websocket::close_reason(
        static_cast<websocket::close_code>(code),
        beast::string_view(reason.data(), std::min<size_t>(reason.size(), 120)));
    PostPump();
  }

 private:
  void Configure(const std::string& protocol) {
    const HttpServerOptions& options = connection_->core()->options;
    websocket::stream_base::timeout none{};
    none.handshake_timeout = websocket::stream_base::none();
    none.idle_timeout = websocket::stream_base::none();
    none.keep_alive_pings = false;
    stream_->set_option(none);
    stream_->read_message_max(options.limits.websocket_message);
    stream_->auto_fragment(false);
    if (options.websocket_deflate) {
      websocket::permessage_deflate deflate;
      deflate.server_enable = true;
      // 4 KiB of history for what is sent. The client's side cannot be bounded: those that do not
      // offer it would not be compressed at all.
      deflate.server_max_window_bits = 12;
      deflate.memLevel = 4;
      deflate.msg_size_threshold = 256;
      stream_->set_option(deflate);
    }
    if (protocol.empty()) return;
    stream_->set_option(
        websocket::stream_base::decorator([protocol](websocket::response_type& response) {
          response.set(http::field::sec_websocket_protocol, protocol);
        }));
  }

  // With mu_.
  void PostPump() {
    if (!std::exchange(pump_posted_, true))
      connection_->port()->Post([self = shared_from_this()] { self->Pump(); });
  }

  // Sends the next message, or the close after the last.
  void Pump() {
    std::function<void()> drained;
    {
      const MutexLock lock(mu_);
      pump_posted_ = false;
      if (closed_ || !open_ || writing_ || close_sent_) return;
      if (out_.empty()) {
        if (closing_) {
          close_sent_ = connection_->core()->Now();
        } else if (std::exchange(undrained_, false)) {
          drained = callbacks_.drained;
        }
      } else {
        writing_ = true;
        undrained_ = true;
        sending_ = std::move(out_.front());
        out_.pop_front();
      }
    }
    if (writing_) return Write();
    if (close_sent_) return SendClose();
    if (drained) drained();
  }

  void Write() {
    stream_->text(true);
    stream_->async_write(asio::buffer(*sending_),
                         [self = shared_from_this()](error_code error, size_t) {
                           if (self->ended_) return;
                           self->writing_ = false;
                           {
                             const MutexLock lock(self->mu_);
                             self->queued_ -= self->sending_->size();
                             self->sending_.reset();
                           }
                           // A read tells the end better; without one this must.
                           if (error && !self->reading_) return self->End(kLost, error.message());
                           if (!error) self->Pump();
                         });
  }

  void SendClose() {
    stream_->async_close(our_reason_, [self = shared_from_this()](error_code) {
      // A read under way tells what the peer answers.
      if (!self->reading_) self->End(self->our_reason_.code, "");
    });
  }

  void ReadNext() {
    if (ended_ || !open_ || reading_) return;
    {
      const MutexLock lock(mu_);
      if (callbacks_.message == nullptr) return;
    }
    reading_ = true;
    if (reading_since_ == TimePoint()) reading_since_ = connection_->core()->Now();
    stream_->async_read(in_, [self = shared_from_this()](error_code error, size_t) {
      self->reading_ = false;
      if (self->ended_) return;
      if (error) return self->EndOfReading(error);
      self->TakeMessage();
    });
  }

  void TakeMessage() {
    std::shared_ptr<std::function<void(std::string_view, bool)>> fn;
    {
      const MutexLock lock(mu_);
      fn = callbacks_.message;
    }
    const auto data = in_.cdata();
    if (fn != nullptr)
      (*fn)({static_cast<const char*>(data.data()), data.size()}, stream_->got_text());
    in_.consume(in_.size());
    if (in_.capacity() > kKeepBuffer) in_ = beast::flat_buffer();
    ReadNext();
  }

  void EndOfReading(error_code error) {
    if (error == websocket::error::closed) {
      const auto& reason = stream_->reason();
      return End(reason.code == 0 ? 1005 : reason.code,
                 std::string(reason.reason.data(), reason.reason.size()));
    }
    if (error == websocket::error::message_too_big)
      return End(1009, "a message was longer than is allowed");
    End(kLost, error.message());
  }

  void End(uint16_t code, std::string reason) {
    if (std::exchange(ended_, true)) return;
    const auto self = shared_from_this();
    Callbacks dropped;
    {
      const MutexLock lock(mu_);
      closed_ = true;
      end_ = {code, reason};
      std::swap(dropped, callbacks_);
      out_.clear();
      queued_ = 0;
    }
    if (bytes_ != nullptr) bytes_->Fail(asio::error::operation_aborted);
    // They belong to the loop, which the handler's reference to this may outlive.
    stream_.reset();
    bytes_.reset();
    connection_->Close();
    if (dropped.closed) dropped.closed(code, std::move(reason));
  }

  struct Callbacks {
    // Shared, because a callback may be replaced while it runs.
    std::shared_ptr<std::function<void(std::string_view, bool)>> message;
    std::function<void()> drained;
    std::function<void(uint16_t, std::string)> closed;
  };

  const std::shared_ptr<ServerConnection> connection_;
  const size_t most_queued_;

  // Of the I/O thread.
  std::shared_ptr<TransportBytes> bytes_;
  std::unique_ptr<Stream> stream_;
  beast::flat_buffer in_;
  std::shared_ptr<const std::string> sending_;
  bool open_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool pinging_ = false;
  bool ended_ = false;
  std::optional<TimePoint> close_sent_;
  TimePoint reading_since_;
  TimePoint pinged_;

  mutable Mutex mu_;  // of what follows
  std::deque<std::shared_ptr<const std::string>> out_;
  size_t queued_ = 0;
  bool pump_posted_ = false;
  bool undrained_ = false;
  bool closing_ = false;
  bool closed_ = false;
  websocket::close_reason our_reason_;
  std::pair<uint16_t, std::string> end_{kLost, ""};
  Callbacks callbacks_;
};

class Handle final : public HttpWebSocket {
 public:
  explicit Handle(std::shared_ptr<ServerWebSocket> socket) : socket_(std::move(socket)) {}
  ~Handle() override { socket_->Close(1001, ""); }
  bool Send(std::string text) override { return socket_->Send(std::move(text)); }
  bool SendShared(std::shared_ptr<const std::string> text) override {
    return socket_->SendShared(std::move(text));
  }
  size_t queued_bytes() const override { return socket_->queued_bytes(); }
  void OnMessage(std::function<void(std::string_view bytes, bool text)> fn) override {
    socket_->OnMessage(std::move(fn));
  }
  void OnDrained(std::function<void()> fn) override { socket_->OnDrained(std::move(fn)); }
  void OnClosed(std::function<void(uint16_t code, std::string reason)> fn) override {
    socket_->OnClosed(std::move(fn));
  }
  void Close(uint16_t code, std::string_view reason) override { socket_->Close(code, reason); }

 private:
  const std::shared_ptr<ServerWebSocket> socket_;
};

}  // namespace

std::shared_ptr<ServerWebSocket> ServerWebSocket::Make(
    std::shared_ptr<ServerConnection> connection) {
  return std::make_shared<BeastServerWebSocket>(std::move(connection));
}

std::shared_ptr<HttpWebSocket> MakeWebSocketHandle(std::shared_ptr<ServerWebSocket> socket) {
  return std::make_shared<Handle>(std::move(socket));
}

}  // namespace shoal::net
