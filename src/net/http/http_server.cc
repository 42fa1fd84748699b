#include "net/http/http_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "net/address.h"
#include "net/event_loop.h"
#include "net/http/server_connection.h"
#include "net/http/server_core.h"
#include "net/http/server_transport.h"
#include "net/tcp_keep_alive.h"

namespace shoal::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kTick = std::chrono::milliseconds(200);        // between looks at deadlines
constexpr auto kAcceptPause = std::chrono::milliseconds(50);  // when descriptors ran out
constexpr auto kRefreshTls = std::chrono::seconds(2);
constexpr size_t kMostRefusing = 64;  // connections over a limit that are told so at once
constexpr size_t kFreedAtOnce = 16;   // idle connections closed when descriptors ran out

// An I/O thread and its connections.
class ServerThread final : public ConnectionOwner {
 public:
  explicit ServerThread(std::shared_ptr<ServerCore> core)
      : core_(std::move(core)), port_(std::make_shared<LoopPort>(&loop_)) {}

  void Begin() {
    thread_ = std::thread([this] {
      port_->Begin();
      loop_.Run();
    });
  }

  // Any thread. Closes everything and joins.
  void End() {
    port_->Post([this] {
      CloseAll();
      loop_.Stop();
    });
    if (thread_.joinable()) thread_.join();
    port_->End();
  }

  // Any thread.
  void Adopt(UniqueFd socket, bool v6, ConnectionContext context) {
    auto shared = std::make_shared<UniqueFd>(std::move(socket));
    port_->Post([this, shared, v6, context = std::move(context)]() mutable {
      Add(std::move(*shared), v6, std::move(context));
    });
  }
  void FinishAll() {
    port_->Post([this] {
      for (const auto& connection : Snapshot()) connection->FinishSoon();
    });
  }
  void CloseAllSoon() {
    port_->Post([this] { CloseAll(); });
  }
  // Closes those that have been idle for longest.
  void FreeDescriptors() {
    port_->Post([this] {
      std::vector<std::pair<TimePoint, std::shared_ptr<ServerConnection>>> idle;
      for (const auto& [key, connection] : connections_)
        if (const auto since = connection->idle_since()) idle.emplace_back(*since, connection);
      const size_t count = std::min(idle.size(), kFreedAtOnce);
      std::partial_sort(idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(count), idle.end(),
                        [](const auto& a, const auto& b) { return a.first < b.first; });
      for (size_t i = 0; i < count; ++i) idle[i].second->Close();
    });
  }

  void Remove(ServerConnection* connection) override {
    connections_.erase(connection);
    if (core_->connections > 0) return;
    const MutexLock lock(core_->empty_mu);
    core_->empty.notify_all();
  }
  Loop* loop() { return &loop_; }
  const std::shared_ptr<LoopPort>& port() const { return port_; }

 private:
  void Add(UniqueFd socket, bool v6, ConnectionContext context) {
    context.owner = this;
    context.port = port_;
    auto transport = MakeServerTransport(&loop_, socket.Release(), v6, core_->tls.get());
    if (transport == nullptr) {
      if (!context.peer_key.empty()) core_->peers.Remove(context.peer_key);
      if (context.refused) --core_->refusing;
      --core_->connections;
      return;
    }
    auto connection = std::make_shared<ServerConnection>(std::move(context), std::move(transport));
    connections_.emplace(connection.get(), connection);
    connection->Start();
    if (core_->stopping) connection->FinishSoon();
    if (!std::exchange(ticking_, true)) Tick();
  }

  void Tick() {
    loop_.After(kTick, [this] {
      const TimePoint now = core_->Now();
      for (const auto& connection : Snapshot()) connection->CheckDeadlines(now);
      ticking_ = !connections_.empty();
      if (ticking_) Tick();
    });
  }

  void CloseAll() {
    for (const auto& connection : Snapshot()) connection->Close();
  }

  std::vector<std::shared_ptr<ServerConnection>> Snapshot() const {
    std::vector<std::shared_ptr<ServerConnection>> all;
    all.reserve(connections_.size());
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    return all;
  }

  const std::shared_ptr<ServerCore> core_;
  Loop loop_;
  const std::shared_ptr<LoopPort> port_;
  std::thread thread_;
  std::unordered_map<ServerConnection*, std::shared_ptr<ServerConnection>> connections_;
  bool ticking_ = false;
};

class BeastHttpServer final : public HttpServer {
 public:
  explicit BeastHttpServer(std::shared_ptr<ServerCore> core) : core_(std::move(core)) {
    const size_t threads = std::max<size_t>(core_->options.threads, 1);
    for (size_t i = 0; i < threads; ++i) threads_.push_back(std::make_unique<ServerThread>(core_));
    acceptor_ = std::make_unique<tcp::acceptor>(threads_[0]->loop()->context());
    pause_ = std::make_unique<asio::steady_timer>(threads_[0]->loop()->context());
  }

  ~BeastHttpServer() override {
    StopAccepting();
    for (const auto& thread : threads_) thread->End();
    pause_.reset();
    acceptor_.reset();
  }

  Status Open() {
    const HttpServerOptions& options = core_->options;
    error_code error;
    const auto address = asio::ip::make_address(options.address, error);
    if (error)
      return InvalidArgument("\"" + options.address.substr(0, 100) + "\" is no numeric address");
    const tcp::endpoint endpoint(address, options.port);
    acceptor_->open(endpoint.protocol(), error);
    if (!error) acceptor_->set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && address.is_v6()) acceptor_->set_option(asio::ip::v6_only(false), error);
    if (!error) acceptor_->bind(endpoint, error);
    if (!error) acceptor_->listen(tcp::acceptor::max_listen_connections, error);
    if (error) {
      return FailedPrecondition("cannot listen at " +
                                FormatHostPort(options.address, options.port) + ": " +
                                error.message());
    }
    ::fcntl(acceptor_->native_handle(), F_SETFD, FD_CLOEXEC);
    acceptor_->non_blocking(true, error);
    v6_ = address.is_v6();
    port_ = acceptor_->local_endpoint(error).port();
    return Status::Ok();
  }

  void Begin() {
    for (const auto& thread : threads_) thread->Begin();
    threads_[0]->port()->Post([this] {
      Await();
      if (core_->tls != nullptr) RefreshTls();
    });
  }

  uint16_t port() const override { return port_; }

  std::string url() const override {
    return (core_->tls != nullptr ? "https://" : "http://") +
           FormatHostPort(core_->options.address, port_);
  }

  std::string fingerprint() const override {
    return core_->tls != nullptr ? core_->tls->fingerprint() : "";
  }

  HttpServerStats stats() const override {
    return {.connections = core_->connections,
            .accepted = core_->accepted,
            .requests = core_->requests,
            .refused_connections = core_->refused_connections,
            .bad_requests = core_->bad_requests,
            .accept_errors = core_->accept_errors};
  }

  void Shutdown(Duration limit) override {
    StopAccepting();
    for (const auto& thread : threads_) thread->FinishAll();
    {
      MutexLock lock(core_->empty_mu);
      core_->empty.wait_for(lock, limit, [this] { return core_->connections == 0; });
    }
    for (const auto& thread : threads_) thread->CloseAllSoon();
  }

 private:
  void StopAccepting() {
    core_->stopping = true;
    threads_[0]->port()->Post([this] {
      error_code ignored;
      acceptor_->close(ignored);
      pause_->cancel();
    });
  }

  void Await() {
    acceptor_->async_wait(tcp::acceptor::wait_read, [this](error_code error) {
      if (error || core_->stopping) return;
      AcceptAll();
    });
  }

  // As many as have come, up to a bound, so that connections of this thread go on.
  void AcceptAll() {
    for (int i = 0; i < 64; ++i) {
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      UniqueFd socket(::accept4(acceptor_->native_handle(), reinterpret_cast<sockaddr*>(&from),
                                &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid()) {
        if (errno == EAGAIN) return Await();
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
          return AcceptLater();
        continue;  // that connection broke before it was accepted
      }
      Take(std::move(socket), from);
    }
    Await();
  }

  void AcceptLater() {
    if (core_->accept_errors++ % 1024 == 0)
      LogWarning(
          "the HTTP server is out of descriptors (RLIMIT_NOFILE); idle connections are closed");
    for (const auto& thread : threads_) thread->FreeDescriptors();
    pause_->expires_after(kAcceptPause);
    pause_->async_wait([this](error_code cancelled) {
      if (!cancelled && !core_->stopping) AcceptAll();
    });
  }

  void Take(UniqueFd socket, const sockaddr_storage& from) {
    const HttpServerLimits& limits = core_->options.limits;
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    SetKeepAlive(socket.get(), limits.write_time);
    ConnectionContext context;
    context.core = core_;
    context.peer = PeerOf(from);
    context.accepted = core_->Now();
    ++core_->accepted;
    std::string key = PeerKey(context.peer.host);
    if (core_->connections >= limits.connections + core_->refusing) {
      context.refused = true;
    } else if (!key.empty()) {
      context.refused = !core_->peers.Add(key, limits.connections_by_peer);
      if (!context.refused) context.peer_key = std::move(key);
    }
    if (context.refused && ++core_->refusing > kMostRefusing) {
      --core_->refusing;
      ++core_->refused_connections;
      return;
    }
    ++core_->connections;
    next_ = (next_ + 1) % threads_.size();
    threads_[next_]->Adopt(std::move(socket), v6_, std::move(context));
  }

  static PeerAddress PeerOf(const sockaddr_storage& from) {
    if (from.ss_family == AF_INET) {
      const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
      return {asio::ip::address_v4(ntohl(v4.sin_addr.s_addr)).to_string(), ntohs(v4.sin_port)};
    }
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
    asio::ip::address_v6::bytes_type bytes;
    std::copy_n(v6.sin6_addr.s6_addr, bytes.size(), bytes.begin());
    const asio::ip::address_v6 address(bytes);
    const std::string host =
        address.is_v4_mapped() ? asio::ip::make_address_v4(asio::ip::v4_mapped, address).to_string()
                               : address.to_string();
    return {host, ntohs(v6.sin6_port)};
  }

  void RefreshTls() {
    threads_[0]->loop()->After(kRefreshTls, [this] {
      core_->tls->Refresh();
      RefreshTls();
    });
  }

  const std::shared_ptr<ServerCore> core_;
  std::vector<std::unique_ptr<ServerThread>> threads_;
  std::unique_ptr<tcp::acceptor> acceptor_;  // of the first thread
  std::unique_ptr<asio::steady_timer> pause_;
  size_t next_ = 0;  // the thread of the next connection
  uint16_t port_ = 0;
  bool v6_ = false;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options) {
  SHOAL_CHECK(options.handler != nullptr);
  auto core = std::make_shared<ServerCore>();
  if (options.tls.enabled() || !options.tls.key_file.empty()) {
    TRY_ASSIGN(core->tls, ServerTls::Make(options.tls));
  }
  core->options = std::move(options);
  auto server = std::make_unique<BeastHttpServer>(core);
  TRY(server->Open());
  server->Begin();
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace shoal::net
