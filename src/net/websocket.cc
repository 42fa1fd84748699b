#include "net/websocket.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <cerrno>
#include <deque>
#include <utility>

#include "base/log.h"
#include "net/address.h"
#include "net/tcp_keep_alive.h"

namespace shoal::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = beast::websocket;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

using WebSocketStream = websocket::stream<beast::tcp_stream, false>;

constexpr auto kCloseLimit = std::chrono::seconds(2);
// A client's messages are masked in pieces of this size, each a write of its own: room for a log
// frame.
constexpr size_t kMaskBuffer = 68 << 10;
constexpr uint32_t kHeaderLimit = 8192;
constexpr auto kRefusalLimit = std::chrono::seconds(1);
constexpr auto kAcceptPause = std::chrono::milliseconds(50);  // when descriptors ran out

// Asio opens its sockets without it; nothing of ours may leak into programs that are started.
template <typename Socket>
void SetCloseOnExec(Socket& socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

std::string TextOf(const tcp::endpoint& endpoint) {
  return FormatHostPort(endpoint.address().to_string(), endpoint.port());
}

// The connection's state; handlers under way keep it alive after the user let go of it.
class Session final : public std::enable_shared_from_this<Session> {
 public:
  Session(Loop* loop, std::unique_ptr<WebSocketStream> stream, std::shared_ptr<void> slot)
      : stream_(std::move(stream)), close_timer_(loop->context()), slot_(std::move(slot)) {
    error_code ignored;
    const auto& socket = beast::get_lowest_layer(*stream_).socket();
    peer_ = TextOf(socket.remote_endpoint(ignored));
    local_host_ = socket.local_endpoint(ignored).address().to_string();
  }

  void Start(WebSocket::OnMessage on_message, WebSocket::OnClose on_close) {
    on_message_ = std::make_shared<WebSocket::OnMessage>(std::move(on_message));
    on_close_ = std::move(on_close);
    Read();
  }

  void Send(std::shared_ptr<const std::string> bytes, bool text) {
    if (closing_ || dead_) return;
    queued_bytes_ += bytes->size();
    out_.push_back({std::move(bytes), text});
    if (!writing_) Write();
  }

  void Close(std::string_view reason) {
    if (closing_ || dead_) return;
    closing_ = true;
    reason_ = reason.substr(0, 120);
    close_timer_.expires_after(kCloseLimit);
    close_timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->CloseSocket();
    });
    if (!writing_) SendClose();
  }

  // The user is gone: no more callbacks.
  void Abandon() {
    on_message_.reset();
    on_close_ = nullptr;
    on_drain_.reset();
    CloseSocket();
  }

  void OnDrain(std::function<void()> fn) {
    on_drain_ = std::make_shared<std::function<void()>>(std::move(fn));
  }
  size_t queued_bytes() const { return queued_bytes_; }
  const std::string& peer() const { return peer_; }
  const std::string& local_host() const { return local_host_; }
  std::string close_reason() const {
    const auto& reason = stream_->reason().reason;
    return {reason.data(), reason.size()};
  }

 private:
  struct Out {
    std::shared_ptr<const std::string> bytes;
    bool text;
  };

  void Read() {
    stream_->async_read(in_, [self = shared_from_this()](error_code error, size_t) {
      if (error) {
        self->End(error);
        return;
      }
      if (const auto fn = self->on_message_) {
        const auto data = self->in_.cdata();
        (*fn)({static_cast<const char*>(data.data()), data.size()}, self->stream_->got_text());
      }
      self->in_.consume(self->in_.size());
      if (!self->dead_) self->Read();
    });
  }

  void Write() {
    writing_ = true;
    stream_->text(out_.front().text);
    stream_->async_write(asio::buffer(*out_.front().bytes),
                         [self = shared_from_this()](error_code error, size_t) {
                           self->writing_ = false;
                           self->Written(error);
                         });
  }

  void Written(error_code error) {
    if (error) {
      // A pending read fails as well and tells the user; without one there is no user to tell.
      CloseSocket();
      return;
    }
    queued_bytes_ -= out_.front().bytes->size();
    out_.pop_front();
    if (!out_.empty()) {
      Write();
    } else if (closing_) {
      SendClose();
    } else if (const auto fn = on_drain_) {
      (*fn)();
    }
  }

  void SendClose() {
    writing_ = true;
    stream_->async_close(
        websocket::close_reason(websocket::close_code::normal,
                                beast::string_view(reason_.data(), reason_.size())),
        [self = shared_from_this()](error_code) { self->End(websocket::error::closed); });
  }

  void End(error_code error) {
    CloseSocket();
    auto fn = std::exchange(on_close_, nullptr);
    on_message_.reset();
    on_drain_.reset();
    if (!fn) return;
    if (closing_ || error == websocket::error::closed) {
      fn(Status::Ok());
    } else if (error == websocket::error::message_too_big) {
      fn(ResourceExhausted(peer_ + " sent a message longer than is allowed"));
    } else if (error == asio::error::eof || error == asio::error::connection_reset ||
               error == asio::error::broken_pipe || error == asio::error::operation_aborted) {
      fn(Unavailable("the connection to " + peer_ + " was lost"));
    } else {
      fn(Unavailable("the connection to " + peer_ + " failed: " + error.message()));
    }
  }

  void CloseSocket() {
    if (std::exchange(dead_, true)) return;
    close_timer_.cancel();
    beast::get_lowest_layer(*stream_).close();
    slot_.reset();
  }

  std::unique_ptr<WebSocketStream> stream_;
  asio::steady_timer close_timer_;
  std::shared_ptr<void> slot_;
  std::string peer_;
  std::string local_host_;
  std::string reason_;  // that we close with
  beast::flat_buffer in_;
  std::deque<Out> out_;
  size_t queued_bytes_ = 0;
  bool writing_ = false;  // a write or the close is under way
  bool closing_ = false;
  bool dead_ = false;
  // Shared, because a callback may replace or drop itself while it runs.
  std::shared_ptr<WebSocket::OnMessage> on_message_;
  WebSocket::OnClose on_close_;
  std::shared_ptr<std::function<void()>> on_drain_;
};

class Handle final : public WebSocket {
 public:
  explicit Handle(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  ~Handle() override { session_->Abandon(); }
  void Start(OnMessage on_message, OnClose on_close) override {
    session_->Start(std::move(on_message), std::move(on_close));
  }
  void SendText(std::string bytes) override {
    session_->Send(std::make_shared<const std::string>(std::move(bytes)), true);
  }
  void SendBinary(std::string bytes) override {
    session_->Send(std::make_shared<const std::string>(std::move(bytes)), false);
  }
  void SendShared(std::shared_ptr<const std::string> bytes, bool text) override {
    session_->Send(std::move(bytes), text);
  }
  size_t queued_bytes() const override { return session_->queued_bytes(); }
  void OnDrain(std::function<void()> fn) override { session_->OnDrain(std::move(fn)); }
  void Close(std::string_view reason) override { session_->Close(reason); }
  const std::string& peer() const override { return session_->peer(); }
  const std::string& local_host() const override { return session_->local_host(); }
  std::string close_reason() const override { return session_->close_reason(); }

 private:
  std::shared_ptr<Session> session_;
};

void Configure(WebSocketStream& stream, const WebSocketLimits& limits) {
  beast::get_lowest_layer(stream).expires_never();
  websocket::stream_base::timeout timeout{};
  timeout.handshake_timeout = limits.handshake;
  timeout.idle_timeout = websocket::stream_base::none();
  timeout.keep_alive_pings = false;
  stream.set_option(timeout);
  stream.read_message_max(limits.message_bytes);
  stream.auto_fragment(false);
  stream.write_buffer_bytes(kMaskBuffer);
}

std::unique_ptr<WebSocket> MakeWebSocket(Loop* loop, std::unique_ptr<WebSocketStream> stream,
                                         std::shared_ptr<void> slot) {
  return std::make_unique<Handle>(
      std::make_shared<Session>(loop, std::move(stream), std::move(slot)));
}

// One attempt to connect: resolve, connect, upgrade, under one deadline.
class Dial final : public std::enable_shared_from_this<Dial> {
 public:
  using Done = std::function<void(Result<std::unique_ptr<WebSocket>>)>;

  Dial(Loop* loop, ConnectOptions options, Done done)
      : loop_(loop),
        options_(std::move(options)),
        done_(std::move(done)),
        where_(FormatHostPort(options_.host, options_.port)),
        resolver_(loop->context()),
        deadline_(loop->context()),
        stream_(std::make_unique<WebSocketStream>(loop->context())) {}

  void Start() {
    deadline_.expires_after(options_.limits.handshake);
    deadline_.async_wait([self = shared_from_this()](error_code error) {
      if (error) return;
      const std::string why = "no answer from " + self->where_ + " in time";
      self->Finish(self->connected_ ? DeadlineExceeded(why + ", though it took the connection")
                                    : Unavailable(why));
    });
    error_code error;
    const auto address = asio::ip::make_address(options_.host, error);
    if (!error) {
      const tcp::endpoint endpoint(address, options_.port);
      auto& socket = beast::get_lowest_layer(*stream_).socket();
      socket.open(endpoint.protocol(), error);
      if (error) return Fail(Unavailable("cannot open a socket: " + error.message()));
      SetCloseOnExec(socket);
      beast::get_lowest_layer(*stream_).async_connect(
          endpoint, [self = shared_from_this()](error_code failed) { self->Connected(failed); });
      return;
    }
    resolver_.async_resolve(
        options_.host, std::to_string(options_.port),
        [self = shared_from_this()](error_code failed, const tcp::resolver::results_type& found) {
          self->Resolved(failed, found);
        });
  }

  void Cancel() {
    done_ = nullptr;
    Finish(Cancelled("given up"));
  }

 private:
  void Resolved(error_code error, const tcp::resolver::results_type& found) {
    if (!done_) return;
    if (error) {
      Finish(Unavailable("the name " + options_.host + " does not resolve: " + error.message()));
      return;
    }
    beast::get_lowest_layer(*stream_).async_connect(
        found, [self = shared_from_this()](error_code failed, const tcp::endpoint&) {
          self->Connected(failed);
        });
  }

  void Connected(error_code error) {
    if (!done_) return;
    if (error) {
      Finish(Unavailable("no server answers at " + where_ + ": " + error.message()));
      return;
    }
    auto& socket = beast::get_lowest_layer(*stream_).socket();
    // A port of the ephemeral range without a listener can be met by our own SYN.
    if (socket.local_endpoint(error) == socket.remote_endpoint(error)) {
      Finish(Unavailable("no server answers at " + where_));
      return;
    }
    connected_ = true;
    SetCloseOnExec(socket);
    socket.set_option(tcp::no_delay(true), error);
    SetKeepAlive(socket.native_handle(), kLongestPause);
    Configure(*stream_, options_.limits);
    stream_->async_handshake(where_, options_.path, [self = shared_from_this()](error_code failed) {
      self->Upgraded(failed);
    });
  }

  void Upgraded(error_code error) {
    if (!done_) return;
    if (!error) {
      Finish(MakeWebSocket(loop_, std::move(stream_), nullptr));
    } else if (error == asio::error::eof || error == asio::error::connection_reset ||
               error == beast::http::error::end_of_stream) {
      Finish(Unavailable(where_ + " closed the connection"));
    } else {
      Finish(FailedPrecondition("the listener at " + where_ +
                                " is no coordinator of ours: " + error.message()));
    }
  }

  // From the loop, as Connect promises.
  void Fail(Status why) {
    asio::post(loop_->context(),
               [self = shared_from_this(), why = std::move(why)] { self->Finish(why); });
  }

  void Finish(Result<std::unique_ptr<WebSocket>> result) {
    deadline_.cancel();
    resolver_.cancel();
    if (stream_) beast::get_lowest_layer(*stream_).close();
    if (auto done = std::exchange(done_, nullptr)) done(std::move(result));
  }

  Loop* loop_;
  const ConnectOptions options_;
  Done done_;  // empty once told or given up
  const std::string where_;
  tcp::resolver resolver_;
  asio::steady_timer deadline_;
  std::unique_ptr<WebSocketStream> stream_;
  bool connected_ = false;
};

class DialHandle final : public Connecting {
 public:
  explicit DialHandle(std::shared_ptr<Dial> dial) : dial_(std::move(dial)) {}
  ~DialHandle() override { dial_->Cancel(); }

 private:
  std::shared_ptr<Dial> dial_;
};

// State that the server shares with the connections in their handshake.
struct Shared {
  Loop* loop;
  std::string path;
  size_t connections;
  WebSocketLimits limits;
  WebSocketServer::OnAccept on_accept;  // empty once the server is gone
  size_t open = 0;
};

// A connection from accept to the end of its handshake.
class Upgrade final : public std::enable_shared_from_this<Upgrade> {
 public:
  Upgrade(std::shared_ptr<Shared> shared, tcp::socket socket)
      : shared_(std::move(shared)), stream_(std::move(socket)) {
    ++shared_->open;
    slot_ = std::shared_ptr<void>(nullptr, [owner = shared_](void*) { --owner->open; });
    parser_.header_limit(kHeaderLimit);
    parser_.body_limit(0);
  }

  void Start() {
    error_code ignored;
    SetCloseOnExec(stream_.socket());
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    SetKeepAlive(stream_.socket().native_handle(), kLongestPause);
    stream_.expires_after(shared_->limits.handshake);
    http::async_read(
        stream_, buffer_, parser_,
        [self = shared_from_this()](error_code error, size_t) { self->Requested(error); });
  }

 private:
  void Requested(error_code error) {
    if (error == beast::error::timeout || error == http::error::end_of_stream ||
        error == asio::error::connection_reset || error == asio::error::operation_aborted) {
      return;
    }
    if (error) {
      Refuse("400 Bad Request", "This port speaks WebSocket; the bytes that came are not HTTP.\n");
    } else if (!websocket::is_upgrade(parser_.get())) {
      Refuse("426 Upgrade Required", "This port speaks WebSocket only.\n");
    } else if (parser_.get().target() != beast::string_view(shared_->path)) {
      Refuse("404 Not Found", "There is nothing at this path.\n");
    } else {
      Accept();
    }
  }

  void Accept() {
    request_ = parser_.release();
    upgraded_ = std::make_unique<WebSocketStream>(std::move(stream_));
    Configure(*upgraded_, shared_->limits);
    upgraded_->async_accept(request_, [self = shared_from_this()](error_code error) {
      if (error) return;
      const auto on_accept = self->shared_->on_accept;
      if (!on_accept) return;
      on_accept(
          MakeWebSocket(self->shared_->loop, std::move(self->upgraded_), std::move(self->slot_)));
    });
  }

  // A short answer, then an end that lets the answer arrive: what still comes is read and dropped.
  void Refuse(const std::string& status, const std::string& text) {
    answer_ = "HTTP/1.1 " + status + "\r\nContent-Type: text/plain\r\nConnection: close\r\n" +
              "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
    stream_.expires_after(kRefusalLimit);
    asio::async_write(stream_, asio::buffer(answer_),
                      [self = shared_from_this()](error_code error, size_t) {
                        if (error) return;
                        error_code ignored;
                        self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
                        self->DropInput();
                      });
  }

  void DropInput() {
    stream_.async_read_some(asio::buffer(scratch_),
                            [self = shared_from_this()](error_code error, size_t) {
                              if (!error) self->DropInput();
                            });
  }

  std::shared_ptr<Shared> shared_;
  beast::tcp_stream stream_;
  std::shared_ptr<void> slot_;
  beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  http::request<http::empty_body> request_;
  std::unique_ptr<WebSocketStream> upgraded_;
  std::string answer_;
  char scratch_[4096];
};

class Server final : public WebSocketServer, public std::enable_shared_from_this<Server> {
 public:
  Server(Loop* loop, ServerOptions options, OnAccept on_accept)
      : shared_(std::make_shared<Shared>(Shared{loop, std::move(options.path), options.connections,
                                                options.limits, std::move(on_accept)})),
        acceptor_(loop->context()),
        pause_(loop->context()) {}

  Status Open(const ServerOptions& options, UniqueFd listener) {
    error_code error;
    if (listener.valid()) return Inherit(std::move(listener));
    const auto address = asio::ip::make_address(options.host, error);
    if (error) {
      return InvalidArgument("'" + options.host + "' is no numeric address to listen at");
    }
    const tcp::endpoint endpoint(address, options.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) SetCloseOnExec(acceptor_);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      const std::string where = FormatHostPort(options.host, options.port);
      return FailedPrecondition("cannot listen at " + where + ": " + error.message());
    }
    return Status::Ok();
  }

  void Accept() {
    acceptor_.async_accept([self = shared_from_this()](error_code error, tcp::socket socket) {
      self->Accepted(error, std::move(socket));
    });
  }

  void Shutdown() {
    shared_->on_accept = nullptr;
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }

  uint16_t port() const override {
    error_code ignored;
    return acceptor_.local_endpoint(ignored).port();
  }

 private:
  Status Inherit(UniqueFd listener) {
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
      return ErrnoStatus(errno, "the inherited socket");
    }
    error_code error;
    acceptor_.assign(bound.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), listener.get(), error);
    if (error) return InvalidArgument("the inherited socket: " + error.message());
    listener.Release();
    SetCloseOnExec(acceptor_);
    acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) return FailedPrecondition("the inherited socket: " + error.message());
    return Status::Ok();
  }

  void Accepted(error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted || !shared_->on_accept) return;
    if (error) {
      pause_.expires_after(kAcceptPause);
      pause_.async_wait([self = shared_from_this()](error_code cancelled) {
        if (!cancelled) self->Accept();
      });
      return;
    }
    if (shared_->open < shared_->connections) {
      std::make_shared<Upgrade>(shared_, std::move(socket))->Start();
    } else {
      LogWarning("closed a connection: {} are open, which is the limit", shared_->open);
    }
    Accept();
  }

  std::shared_ptr<Shared> shared_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
};

class ServerHandle final : public WebSocketServer {
 public:
  explicit ServerHandle(std::shared_ptr<Server> server) : server_(std::move(server)) {}
  ~ServerHandle() override { server_->Shutdown(); }
  uint16_t port() const override { return server_->port(); }

 private:
  std::shared_ptr<Server> server_;
};

}  // namespace

std::unique_ptr<Connecting> Connect(Loop* loop, ConnectOptions options,
                                    std::function<void(Result<std::unique_ptr<WebSocket>>)> done) {
  auto dial = std::make_shared<Dial>(loop, std::move(options), std::move(done));
  dial->Start();
  return std::make_unique<DialHandle>(std::move(dial));
}

Result<std::unique_ptr<WebSocketServer>> WebSocketServer::Listen(Loop* loop, ServerOptions options,
                                                                 OnAccept on_accept) {
  UniqueFd listener = std::move(options.listener);
  const std::string host = options.host;
  const uint16_t port = options.port;
  auto server = std::make_shared<Server>(loop, std::move(options), std::move(on_accept));
  ServerOptions where;
  where.host = host;
  where.port = port;
  TRY(server->Open(where, std::move(listener)));
  server->Accept();
  return std::unique_ptr<WebSocketServer>(std::make_unique<ServerHandle>(std::move(server)));
}

}  // namespace shoal::net
