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

// Accepts connections, reads one request from each, writes the store's answer and closes. A
// connection that sends no complete request within kSilence is closed.
class SocketHorovodServer final : public HorovodStoreServer {
 public:
  SocketHorovodServer(net::Loop* loop, HorovodStore store)
      : loop_(loop), store_(std::move(store)) {}

  ~SocketHorovodServer() override {
    for (const auto& [id, client] : connections_) loop_->Cancel(client.silence);
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
  struct ClientConnection {
    std::unique_ptr<net::TcpStream> stream;
    HorovodRequestReader reader;
    bool answered = false;
    net::Loop::Id silence = 0;
  };

  void Accept(std::unique_ptr<net::TcpStream> stream) {
    const uint64_t id = next_++;
    ClientConnection& client = connections_[id];
    client.stream = std::move(stream);
    client.silence = loop_->After(kSilence, [this, id] { Drop(id); });
    client.stream->Start([this, id](std::string_view bytes) { Received(id, bytes); },
                         [this, id](const Status&) { Drop(id); });
  }

  void Received(uint64_t id, std::string_view bytes) {
    const auto found = connections_.find(id);
    if (found == connections_.end() || found->second.answered) return;
    ClientConnection& client = found->second;
    auto request = client.reader.Feed(bytes);
    if (request.ok() && !request->has_value()) return;
    client.answered = true;
    if (!request.ok()) {
      LogWarning("refused a request of {}: {}", client.stream->peer_host(),
                 request.status().message());
    }
    client.stream->Send(request.ok() ? store_.Answer(std::move(**request))
                                     : HorovodStore::Refusal(request.status()));
    client.stream->Finish();
  }

  void Drop(uint64_t id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    loop_->Cancel(found->second.silence);
    connections_.erase(found);
  }

  net::Loop* const loop_;
  HorovodStore store_;
  std::map<uint64_t, ClientConnection> connections_;
  uint64_t next_ = 1;
  std::unique_ptr<net::TcpServer> server_;
};

}  // namespace

Result<std::unique_ptr<HorovodStoreServer>> HorovodStoreServer::Start(
    net::Loop* loop, const HorovodStoreServerOptions& options) {
  TRY_ASSIGN(HorovodStore store, HorovodStore::Make(options.hosts));
  auto server = std::make_unique<SocketHorovodServer>(loop, std::move(store));
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
