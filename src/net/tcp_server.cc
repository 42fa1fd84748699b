#include "net/tcp_server.h"

#include <fcntl.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <utility>

#include "base/log.h"
#include "net/address.h"
#include "net/tcp_keep_alive.h"

namespace shoal::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto kFinishLimit = std::chrono::seconds(2);
constexpr auto kAcceptPause = std::chrono::milliseconds(50);  // when descriptors ran out

// The connection's state; handlers under way keep it alive after the user let go of it.
class Flow final : public std::enable_shared_from_this<Flow> {
 public:
  Flow(Loop* loop, tcp::socket socket, std::shared_ptr<void> slot)
      : socket_(std::move(socket)), limit_(loop->context()), slot_(std::move(slot)) {
    error_code ignored;
    ::fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
    socket_.set_option(tcp::no_delay(true), ignored);
    SetKeepAlive(socket_.native_handle(), kLongestPause);
    host_ = socket_.remote_endpoint(ignored).address().to_string();
  }

  void Start(TcpStream::OnBytes on_bytes, TcpStream::OnClose on_close) {
    on_bytes_ = std::make_shared<TcpStream::OnBytes>(std::move(on_bytes));
    on_close_ = std::move(on_close);
    Read();
  }

  void Send(std::string bytes) {
    if (finishing_ || dead_ || bytes.empty()) return;
    queued_bytes_ += bytes.size();
    out_.push_back(std::move(bytes));
    if (out_.size() == 1) Write();
  }

  void Finish() {
    if (std::exchange(finishing_, true) || dead_) return;
    limit_.expires_after(kFinishLimit);
    limit_.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled) self->CloseSocket();
    });
    if (out_.empty()) Shut();
  }

  // The user is gone: no more callbacks.
  void Abandon() {
    on_bytes_.reset();
    on_close_ = nullptr;
    CloseSocket();
  }

  size_t queued_bytes() const { return queued_bytes_; }
  const std::string& host() const { return host_; }

 private:
  void Read() {
    socket_.async_read_some(asio::buffer(in_),
                            [self = shared_from_this()](error_code error, size_t bytes) {
                              if (error) return self->End(error);
                              if (const auto fn = self->on_bytes_) (*fn)({self->in_.data(), bytes});
                              if (!self->dead_) self->Read();
                            });
  }

  void Write() {
    asio::async_write(socket_, asio::buffer(out_.front()),
                      [self = shared_from_this()](error_code error, size_t) {
                        if (error) return self->CloseSocket();  // the pending read tells
                        self->queued_bytes_ -= self->out_.front().size();
                        self->out_.pop_front();
                        if (!self->out_.empty()) return self->Write();
                        if (self->finishing_) self->Shut();
                      });
  }

  void Shut() {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
  }

  void End(error_code error) {
    CloseSocket();
    const auto fn = std::exchange(on_close_, nullptr);
    on_bytes_.reset();
    if (!fn) return;
    fn(error == asio::error::eof || finishing_
           ? Status::Ok()
           : Unavailable("the connection from " + host_ + " was lost: " + error.message()));
  }

  void CloseSocket() {
    if (std::exchange(dead_, true)) return;
    limit_.cancel();
    error_code ignored;
    socket_.close(ignored);
    slot_.reset();
  }

  tcp::socket socket_;
  asio::steady_timer limit_;
  std::shared_ptr<void> slot_;
  std::string host_;
  std::array<char, 16384> in_;
  std::deque<std::string> out_;
  size_t queued_bytes_ = 0;
  bool finishing_ = false;
  bool dead_ = false;
  // Shared, because a callback may destroy the stream while it runs.
  std::shared_ptr<TcpStream::OnBytes> on_bytes_;
  TcpStream::OnClose on_close_;
};

class StreamHandle final : public TcpStream {
 public:
  explicit StreamHandle(std::shared_ptr<Flow> flow) : flow_(std::move(flow)) {}
  ~StreamHandle() override { flow_->Abandon(); }
  void Start(OnBytes on_bytes, OnClose on_close) override {
    flow_->Start(std::move(on_bytes), std::move(on_close));
  }
  void Send(std::string bytes) override { flow_->Send(std::move(bytes)); }
  size_t queued_bytes() const override { return flow_->queued_bytes(); }
  void Finish() override { flow_->Finish(); }
  const std::string& peer_host() const override { return flow_->host(); }

 private:
  std::shared_ptr<Flow> flow_;
};

class Acceptor final : public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(Loop* loop, size_t most, TcpServer::OnAccept on_accept)
      : loop_(loop),
        most_(most),
        on_accept_(std::move(on_accept)),
        acceptor_(loop->context()),
        pause_(loop->context()) {}

  Status Open(const TcpServerOptions& options) {
    error_code error;
    const auto address = asio::ip::make_address(options.host, error);
    if (error) return InvalidArgument("'" + options.host + "' is no numeric address");
    try {
      // Binds with SO_REUSEADDR, hence over a lease.
      acceptor_ = tcp::acceptor(loop_->context(), tcp::endpoint(address, options.port), true);
    } catch (const boost::system::system_error& failed) {
      return FailedPrecondition("cannot listen at " + FormatHostPort(options.host, options.port) +
                                ": " + failed.code().message());
    }
    ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
    return Status::Ok();
  }

  void Accept() {
    acceptor_.async_accept([self = shared_from_this()](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted || !self->on_accept_) return;
      if (error) return self->AcceptLater();
      self->Take(std::move(socket));
      self->Accept();
    });
  }

  void Shutdown() {
    on_accept_ = nullptr;
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }

  uint16_t port() const {
    error_code ignored;
    return acceptor_.local_endpoint(ignored).port();
  }

 private:
  void AcceptLater() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled) self->Accept();
    });
  }

  void Take(tcp::socket socket) {
    if (*open_ >= most_) {
      LogWarning("closed a connection: {} are open, which is the limit", *open_);
      return;
    }
    ++*open_;
    std::shared_ptr<void> slot(nullptr, [open = open_](void*) { --*open; });
    const auto fn = on_accept_;
    fn(std::make_unique<StreamHandle>(
        std::make_shared<Flow>(loop_, std::move(socket), std::move(slot))));
  }

  Loop* const loop_;
  const size_t most_;
  const std::shared_ptr<size_t> open_ = std::make_shared<size_t>(0);
  TcpServer::OnAccept on_accept_;  // empty once the server is gone
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
};

class AcceptorHandle final : public TcpServer {
 public:
  explicit AcceptorHandle(std::shared_ptr<Acceptor> acceptor) : acceptor_(std::move(acceptor)) {}
  ~AcceptorHandle() override { acceptor_->Shutdown(); }
  uint16_t port() const override { return acceptor_->port(); }

 private:
  std::shared_ptr<Acceptor> acceptor_;
};

}  // namespace

Result<std::unique_ptr<TcpServer>> TcpServer::Listen(Loop* loop, const TcpServerOptions& options,
                                                     OnAccept on_accept) {
  auto acceptor = std::make_shared<Acceptor>(loop, options.connections, std::move(on_accept));
  TRY(acceptor->Open(options));
  acceptor->Accept();
  return std::unique_ptr<TcpServer>(std::make_unique<AcceptorHandle>(std::move(acceptor)));
}

void SendOnce(Loop* loop, const std::string& numeric_host, uint16_t port, std::string bytes,
              Duration limit) {
  error_code error;
  const auto address = asio::ip::make_address(numeric_host, error);
  if (error) return;
  const auto socket = std::make_shared<tcp::socket>(loop->context());
  const auto timer = std::make_shared<asio::steady_timer>(loop->context());
  const auto text = std::make_shared<const std::string>(std::move(bytes));
  const tcp::endpoint to(address, port);
  socket->open(to.protocol(), error);
  if (error) return;
  ::fcntl(socket->native_handle(), F_SETFD, FD_CLOEXEC);
  timer->expires_after(limit);
  timer->async_wait([socket](error_code) {
    error_code ignored;
    socket->close(ignored);
  });
  socket->async_connect(to, [socket, timer, text](error_code failed) {
    if (failed) {
      timer->cancel();
      return;
    }
    asio::async_write(*socket, asio::buffer(*text),
                      [timer, text](error_code, size_t) { timer->cancel(); });
  });
}

}  // namespace shoal::net
