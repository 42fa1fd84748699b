#include "engine/kubernetes/pod_relay.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "net/byte_channel.h"

namespace shoal::engine::kubernetes {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kHandshake{10'000};
constexpr size_t kMaxHead = 16 << 10;
constexpr size_t kMostConnections = 64;
constexpr std::string_view kEndOfHead = "\r\n\r\n";
constexpr std::string_view kRefused = "HTTP/1.1 401";

bool IsField(std::string_view line, std::string_view name) {
  if (line.size() <= name.size() || line[name.size()] != ':') return false;
  return std::equal(name.begin(), name.end(), line.begin(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  });
}

// Reads up to the end of the head; the result may include bytes after it.
Result<std::string> ReadHead(net::ByteChannel* from) {
  const auto deadline = SteadyClock::now() + kHandshake;
  std::string text;
  while (text.find(kEndOfHead) == std::string::npos) {
    char block[4096];
    TRY_ASSIGN(const size_t got, net::ReadSome(from, block, sizeof block, deadline));
    if (got == 0 || text.size() + got > kMaxHead) return InvalidArgument("no request came");
    text.append(block, got);
  }
  return text;
}

// The first bytes of the reply; empty if the client closed before.
std::string HearBeginning(net::ByteChannel* from, int asker) {
  std::string begin;
  while (begin.size() < kRefused.size()) {
    char block[4096];
    const net::ByteChannel::Step step = from->Read(block, sizeof block);
    begin.append(block, step.bytes);
    if (step.end || !step.error.ok()) break;
    if (step.wait_for == 0) continue;
    pollfd polls[2] = {{from->fd(), step.wait_for, 0}, {asker, POLLRDHUP, 0}};
    if (::poll(polls, 2, -1) < 0 && errno != EINTR) break;
    if (polls[1].revents != 0) break;
  }
  return begin;
}

// One thread accepts connections; each connection has a thread of its own, which ends with it. The
// destructor shuts all sockets down and joins.
class LoopbackRelay final : public PodRelay {
 public:
  LoopbackRelay(const KubeClient* client, std::function<Result<std::string>()> target)
      : client_(client), target_(std::move(target)) {}

  ~LoopbackRelay() override {
    {
      const MutexLock lock(mu_);
      ending_ = true;
      for (const auto& one : connections_) {
        ::shutdown(one->fd, SHUT_RDWR);
        // The server may not respond: do not wait for it.
        if (one->far != nullptr) one->far->Cancel();
      }
    }
    const uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    if (acceptor_.joinable()) acceptor_.join();
    for (const auto& connection : connections_) connection->thread.join();
  }

  Status Listen() {
    listener_.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    wake_.Reset(::eventfd(0, EFD_CLOEXEC));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    const bool listens =
        listener_.valid() && wake_.valid() && ::bind(listener_.get(), generic, size) == 0 &&
        ::listen(listener_.get(), 64) == 0 && ::getsockname(listener_.get(), generic, &size) == 0;
    if (!listens) return ErrnoStatus(errno, "cannot listen on the loopback for the coordinator");
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
    return Status::Ok();
  }

  Endpoint endpoint() const override { return {"127.0.0.1", port_}; }

 private:
  struct Connection {
    int fd = -1;
    net::ByteChannel* far = nullptr;  // guarded by mu_ of the relay
    std::atomic<bool> done{false};
    std::thread thread;
  };

  void Accept() {
    for (;;) {
      pollfd polls[2] = {{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      ::poll(polls, 2, -1);
      const MutexLock lock(mu_);
      if (ending_) return;
      for (auto it = connections_.begin(); it != connections_.end();) {
        if ((*it)->done) (*it)->thread.join();
        it = (*it)->done ? connections_.erase(it) : std::next(it);
      }
      UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd.valid() || connections_.size() >= kMostConnections) continue;
      auto connection = std::make_unique<Connection>();
      connection->fd = fd.get();
      Connection* const raw = connection.get();
      connections_.push_back(std::move(connection));
      raw->thread = std::thread([this, raw, fd = fd.Release()] {
        const Status carried = Carry(fd, raw);
        {
          // The descriptor number may have been reused: do not shut it down.
          const MutexLock done_lock(mu_);
          raw->fd = -1;
          TellOnce(carried);
        }
        raw->done = true;
      });
    }
  }

  // Under the lock. Logs an error once if clients retry.
  void TellOnce(const Status& carried) REQUIRES(mu_) {
    const std::string why = carried.ok() ? "" : carried.message();
    if (why != last_why_ && !why.empty()) LogInfo("the coordinator's pod is not reached: {}", why);
    last_why_ = why;
  }

  Status Carry(int fd, Connection* connection) {
    const net::WaitInterrupt until_the_end(wake_.get());
    // Closed by the channel; the destructor shuts it down before that.
    const std::unique_ptr<net::ByteChannel> local = net::PlainByteChannel(UniqueFd(fd));
    TRY_ASSIGN(const std::string text, ReadHead(local.get()));
    const size_t head_size = text.find(kEndOfHead) + kEndOfHead.size();
    TRY_ASSIGN(const std::string prefix, target_());
    TRY_ASSIGN(const KubeClient::ServerConnection door, client_->Open());
    TRY_ASSIGN(const std::string head,
               RewriteHead(std::string_view(text).substr(0, head_size),
                           door.http->prefix() + prefix, door.http->host(), door.authorization));
    TRY_ASSIGN(const auto channel, door.http->Connect(kHandshake));
    TRY(BeCancelled(connection, channel.get()));
    const Status pumped = Pump(fd, channel.get(), head + text.substr(head_size));
    (void)BeCancelled(connection, nullptr);
    return pumped;
  }

  // From here on the destructor closes this channel.
  Status BeCancelled(Connection* connection, net::ByteChannel* channel) {
    const MutexLock lock(mu_);
    if (ending_) return Cancelled("the relay ends");
    connection->far = channel;
    return Status::Ok();
  }

  Status Pump(int fd, net::ByteChannel* channel, const std::string& head) {
    TRY(net::SendAll(channel, head, SteadyClock::now() + kHandshake));
    const std::string begin = HearBeginning(channel, fd);
    if (begin.starts_with(kRefused)) client_->InvalidateCredentials();
    net::RelayBytes(channel, begin, fd);
    return Status::Ok();
  }

  const KubeClient* const client_;
  const std::function<Result<std::string>()> target_;
  UniqueFd listener_;
  UniqueFd wake_;
  uint16_t port_ = 0;
  Mutex mu_;
  bool ending_ GUARDED_BY(mu_) = false;
  std::string last_why_ GUARDED_BY(mu_);                                // empty: it was reached
  std::list<std::unique_ptr<Connection>> connections_ GUARDED_BY(mu_);  // until the end
  std::thread acceptor_;
};

}  // namespace

Result<std::string> RewriteHead(std::string_view head, const std::string& prefix,
                                const std::string& host, const std::string& authorization) {
  const size_t line_end = head.find("\r\n");
  const std::string_view first = head.substr(0, line_end);
  constexpr std::string_view kGet = "GET /";
  constexpr std::string_view kVersion = " HTTP/1.1";
  if (line_end == std::string_view::npos || !first.starts_with(kGet) || !first.ends_with(kVersion))
    return InvalidArgument("what came is no WebSocket request");
  const std::string_view path =
      first.substr(kGet.size() - 1, first.size() - kGet.size() + 1 - kVersion.size());
  if (path.find(' ') != std::string_view::npos || path.find("..") != std::string_view::npos)
    return InvalidArgument("what came is no WebSocket request");
  std::string out = "GET " + prefix + std::string(path) + " HTTP/1.1\r\nHost: " + host + "\r\n";
  if (!authorization.empty()) out += "Authorization: " + authorization + "\r\n";
  for (size_t at = line_end + 2; at < head.size();) {
    const size_t end = std::min(head.find("\r\n", at), head.size());
    const std::string_view line = head.substr(at, end - at);
    at = end + 2;
    if (line.empty()) break;
    if (IsField(line, "host") || IsField(line, "authorization") || IsField(line, "origin") ||
        IsField(line, "impersonate-user") || IsField(line, "impersonate-group"))
      continue;
    out += std::string(line) + "\r\n";
  }
  return out + "\r\n";
}

Result<std::unique_ptr<PodRelay>> PodRelay::Start(const KubeClient* client,
                                                  std::function<Result<std::string>()> target) {
  auto relay = std::make_unique<LoopbackRelay>(client, std::move(target));
  TRY(relay->Listen());
  return std::unique_ptr<PodRelay>(std::move(relay));
}

}  // namespace shoal::engine::kubernetes
