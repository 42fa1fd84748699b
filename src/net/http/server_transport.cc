#include "net/http/server_transport.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <cerrno>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "net/http/server_tls.h"

namespace shoal::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Socket = asio::basic_stream_socket<tcp, asio::io_context::executor_type>;

constexpr size_t kReadBlock = 64 << 10;    // of a thread, for connections without TLS
constexpr size_t kTlsReadBlock = 4 << 10;  // of a connection
constexpr size_t kJoin = 16 << 10;         // blocks up to this size are joined
constexpr size_t kMostBuffers = 16;        // of one call

// What waits to be sent.
class Outbox {
 public:
  void Append(std::string bytes) {
    size_ += bytes.size();
    if (!blocks_.empty() && blocks_.size() > locked_ && bytes.size() <= kJoin &&
        blocks_.back().size() <= kJoin) {
      blocks_.back() += bytes;
    } else if (!bytes.empty()) {
      blocks_.push_back(std::move(bytes));
    }
  }
  // Of the first blocks. They stay where they are until Consume.
  std::vector<asio::const_buffer> Lock() {
    std::vector<asio::const_buffer> buffers;
    size_t skip = offset_;
    for (const std::string& block : blocks_) {
      if (buffers.size() == kMostBuffers) break;
      buffers.emplace_back(block.data() + skip, block.size() - skip);
      skip = 0;
    }
    locked_ = buffers.size();
    return buffers;
  }
  void Consume(size_t bytes) {
    locked_ = 0;
    size_ -= bytes;
    offset_ += bytes;
    while (!blocks_.empty() && offset_ >= blocks_.front().size()) {
      offset_ -= blocks_.front().size();
      blocks_.pop_front();
    }
  }
  size_t size() const { return size_; }

 private:
  std::deque<std::string> blocks_;
  size_t offset_ = 0;  // sent of the first
  size_t size_ = 0;
  size_t locked_ = 0;  // blocks that a write under way reads
};

// What is the same with and without TLS: the queue and its user.
class Transport : public ServerTransport {
 public:
  Transport(Loop* loop, int socket, bool v6) : loop_(loop), socket_(loop->context()) {
    error_code ignored;
    socket_.assign(v6 ? tcp::v6() : tcp::v4(), socket, ignored);
    socket_.non_blocking(true, ignored);
  }
  Loop* loop() const override { return loop_; }
  void SetUser(std::weak_ptr<User> user) override { user_ = std::move(user); }
  size_t queued_bytes() const override { return out_.size(); }
  uint64_t sent_bytes() const override { return sent_; }
  void Close() override {
    if (std::exchange(closed_, true)) return;
    user_.reset();
    error_code ignored;
    socket_.close(ignored);
  }

 protected:
  // A write has ended. False: nothing more may be done.
  bool TakeSent(error_code error, size_t bytes) {
    writing_ = false;
    if (closed_) return false;
    if (error) {
      End(false);
      return false;
    }
    sent_ += bytes;
    out_.Consume(bytes);
    return true;
  }
  void TellSent() {
    if (const auto user = user_.lock()) user->OnSent();
  }
  void End(bool orderly) {
    if (const auto user = user_.lock()) user->OnEnd(orderly);
  }
  void TakeBytes(std::string_view bytes) {
    if (const auto user = user_.lock()) user->OnBytes(bytes);
  }

  Loop* const loop_;
  Socket socket_;
  std::weak_ptr<User> user_;
  Outbox out_;
  uint64_t sent_ = 0;
  bool reading_ = false;
  bool writing_ = false;
  bool ending_ = false;  // our side ends after what is queued
  bool closed_ = false;
};

class PlainTransport final : public Transport, public std::enable_shared_from_this<PlainTransport> {
 public:
  using Transport::Transport;

  void Start(std::weak_ptr<User> user) override { user_ = std::move(user); }
  bool ready() const override { return true; }

  void Read() override {
    if (closed_ || std::exchange(reading_, true)) return;
    socket_.async_wait(Socket::wait_read,
                       [self = shared_from_this()](error_code error) { self->Readable(error); });
  }

  void Send(std::string bytes) override {
    if (closed_ || ending_) return;
    const bool first = out_.size() == 0 && !writing_;
    out_.Append(std::move(bytes));
    if (first) SendNow();
  }

  void EndWriting() override {
    if (closed_ || std::exchange(ending_, true)) return;
    if (out_.size() == 0) Shut();
  }

 private:
  void Readable(error_code error) {
    reading_ = false;
    if (closed_) return;
    if (error) return End(false);
    thread_local std::array<char, kReadBlock> block;
    const size_t bytes = socket_.read_some(asio::buffer(block), error);
    if (error == asio::error::would_block || error == asio::error::try_again) return Read();
    if (error) return End(error == asio::error::eof);
    TakeBytes({block.data(), bytes});
  }

  // As much as the kernel takes; a handler goes on with the rest.
  void SendNow() {
    while (out_.size() > 0) {
      error_code error;
      const size_t bytes = socket_.write_some(out_.Lock(), error);
      sent_ += bytes;
      out_.Consume(bytes);
      if (!error) continue;
      // A broken connection is told by the handler as well, never from within Send.
      return AwaitWritable();
    }
  }

  void AwaitWritable() {
    writing_ = true;
    socket_.async_wait(Socket::wait_write,
                       [self = shared_from_this()](error_code error) { self->Writable(error); });
  }

  void Writable(error_code error) {
    size_t bytes = 0;
    if (!error && !closed_) {
      bytes = socket_.write_some(out_.Lock(), error);
      if (error == asio::error::would_block || error == asio::error::try_again) error = {};
    }
    if (!TakeSent(error, bytes)) return;
    if (out_.size() > 0) {
      AwaitWritable();
    } else if (ending_) {
      Shut();
    }
    TellSent();
  }

  void Shut() {
    error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
  }
};

class TlsTransport final : public Transport, public std::enable_shared_from_this<TlsTransport> {
 public:
  TlsTransport(Loop* loop, int socket, bool v6, asio::ssl::context* context)
      : Transport(loop, socket, v6), stream_(socket_, *context) {}

  void Start(std::weak_ptr<User> user) override {
    user_ = std::move(user);
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [self = shared_from_this()](error_code error) {
                              if (self->closed_) return;
                              if (error) return self->End(false);
                              self->open_ = true;
                              if (std::exchange(self->reading_, false)) self->Read();
                              self->SendNext();
                            });
  }

  bool ready() const override { return open_; }

  void Read() override {
    if (closed_ || std::exchange(reading_, true) || !open_) return;
    if (block_.empty()) block_.resize(kTlsReadBlock);
    stream_.async_read_some(asio::buffer(block_),
                            [self = shared_from_this()](error_code error, size_t bytes) {
                              self->reading_ = false;
                              if (self->closed_) return;
                              if (error) return self->End(error == asio::error::eof);
                              self->TakeBytes({self->block_.data(), bytes});
                            });
  }

  void Send(std::string bytes) override {
    if (closed_ || ending_) return;
    out_.Append(std::move(bytes));
    SendNext();
  }

  void EndWriting() override {
    if (closed_ || std::exchange(ending_, true)) return;
    if (out_.size() == 0) Shut();
  }

 private:
  void SendNext() {
    if (!open_ || writing_ || out_.size() == 0) return;
    writing_ = true;
    stream_.async_write_some(
        out_.Lock(),
        [self = shared_from_this()](error_code error, size_t bytes) { self->Sent(error, bytes); });
  }

  void Sent(error_code error, size_t bytes) {
    if (!TakeSent(error, bytes)) return;
    SendNext();
    if (out_.size() == 0 && ending_) Shut();
    TellSent();
  }

  // close_notify and the end of our side. The shutdown's reply is not waited for.
  void Shut() {
    if (writing_) return;
    writing_ = true;
    stream_.async_shutdown([self = shared_from_this()](error_code) {});
    error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
  }

  asio::ssl::stream<Socket&> stream_;
  std::vector<char> block_;
  bool open_ = false;  // hands are shaken
};

}  // namespace

std::shared_ptr<ServerTransport> MakeServerTransport(Loop* loop, int socket, bool v6,
                                                     const ServerTls* tls) {
  if (tls == nullptr) return std::make_shared<PlainTransport>(loop, socket, v6);
  const auto context = tls->context();
  try {
    return std::make_shared<TlsTransport>(loop, socket, v6, context.get());
  } catch (const boost::system::system_error&) {
    ::close(socket);
    return nullptr;
  }
}

}  // namespace shoal::net
