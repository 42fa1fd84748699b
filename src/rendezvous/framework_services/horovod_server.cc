#include "rendezvous/framework_services/horovod_server.h"

#include <signal.h>

#include <map>
#include <utility>

#include "base/log.h"
#include "net/tcp_server.h"
#include "rendezvous/framework_services/horovod_store.h"

namespace shoal::rendezvous {
namespace {

constexpr auto kSilence = std::chrono::seconds(30);  // for one request
constexpr size_t kMostConnections = 16'384;

class Server final : public HorovodStoreServer {
 public:
  Server(net::Loop* loop, HorovodStore store) : loop_(loop), store_(std::move(store)) {}

  ~Server() override {
    for (const auto& [id, peer] : peers_) loop_->Cancel(peer.silence);
  }

  Status Listen(const HorovodStoreServerOptions& options) {
    net::TcpServerOptions listen;
    listen.host = options.host;
    listen.port = options.port;
    listen.connections = kMostConnections;
    TRY_ASSIGN(server_, net::TcpServer::Listen(loop_, listen,
                                               [this](auto stream) { Accept(std::move(stream)); }));
    return Status::Ok();
  }

  uint16_t port() const override { return server_->port(); }

 private:
  struct Peer {
    std::unique_ptr<net::TcpStream> stream;
    HorovodRequestReader reader;
    bool answered = false;
    net::Loop::Id silence = 0;
  };

  void Accept(std::unique_ptr<net::TcpStream> stream) {
    const uint64_t id = next_++;
    Peer& peer = peers_[id];
    peer.stream = std::move(stream);
    peer.silence = loop_->After(kSilence, [this, id] { Drop(id); });
    peer.stream->Start([this, id](std::string_view bytes) { Received(id, bytes); },
                       [this, id](const Status&) { Drop(id); });
  }

  void Received(uint64_t id, std::string_view bytes) {
    const auto found = peers_.find(id);
    if (found == peers_.end() || found->second.answered) return;
    Peer& peer = found->second;
    auto request = peer.reader.Feed(bytes);
    if (request.ok() && !request->has_value()) return;
    peer.answered = true;
    if (!request.ok()) {
      LogWarning("refused a request of {}: {}", peer.stream->peer_host(),
                 request.status().message());
    }
    peer.stream->Send(request.ok() ? store_.Answer(std::move(**request))
                                   : HorovodStore::Refusal(request.status()));
    peer.stream->Finish();
  }

  void Drop(uint64_t id) {
    const auto found = peers_.find(id);
    if (found == peers_.end()) return;
    loop_->Cancel(found->second.silence);
    peers_.erase(found);
  }

  net::Loop* const loop_;
  HorovodStore store_;
  std::map<uint64_t, Peer> peers_;
  uint64_t next_ = 1;
  std::unique_ptr<net::TcpServer> server_;
};

}  // namespace

Result<std::unique_ptr<HorovodStoreServer>> HorovodStoreServer::Start(
    net::Loop* loop, const HorovodStoreServerOptions& options) {
  TRY_ASSIGN(HorovodStore store, HorovodStore::Make(options.hosts));
  auto server = std::make_unique<Server>(loop, std::move(store));
  TRY(server->Listen(options));
  return std::unique_ptr<HorovodStoreServer>(std::move(server));
}

Status RunHorovodStoreServer(const HorovodStoreServerOptions& options) {
  SetLogName("horovod-rendezvous");
  net::Loop loop;
  TRY_ASSIGN(const std::unique_ptr<HorovodStoreServer> server,
             HorovodStoreServer::Start(&loop, options));
  for (const int signal : {SIGTERM, SIGINT}) loop.WatchSignal(signal, [&] { loop.Stop(); });
  loop.Run();
  return Status::Ok();
}

}  // namespace shoal::rendezvous
