#include "rendezvous/framework_services/rabit_tracker_server.h"

#include <signal.h>
#include <unistd.h>

#include <map>
#include <utility>

#include "base/log.h"
#include "base/output_file.h"
#include "net/tcp_server.h"
#include "rendezvous/framework_services/rabit_tracker.h"

namespace shoal::rendezvous {
namespace {

constexpr int kMostWorkers = 100'000;
constexpr auto kSilence = std::chrono::seconds(30);  // until a connection must have sent its hello
constexpr size_t kMostUnread = size_t{1} << 20;      // queued for a worker that does not read
constexpr auto kAlarmLimit = std::chrono::seconds(5);

// Feeds connections' bytes to a RabitTracker and carries out its actions. Connections that stay
// silent, or that do not read their answers, are closed.
class SocketRabitServer final : public RabitTrackerServer {
 public:
  SocketRabitServer(net::Loop* loop, int workers, OnLine on_line)
      : loop_(loop), on_line_(std::move(on_line)), tracker_(workers) {}

  ~SocketRabitServer() override {
    for (const auto& [id, client] : connections_) loop_->Cancel(client.silence);
  }

  Status Listen(const RabitTrackerOptions& options) {
    net::TcpServerOptions listen;
    listen.host = options.host;
    listen.port = options.port;
    listen.connections = static_cast<size_t>(options.workers) * 2 + 256;
    TRY_ASSIGN(server_, net::TcpServer::Listen(loop_, listen,
                                               [this](auto stream) { Accept(std::move(stream)); }));
    return Status::Ok();
  }

  uint16_t port() const override { return server_->port(); }

 private:
  struct ClientConnection {
    std::unique_ptr<net::TcpStream> stream;
    net::Loop::Id silence = 0;
  };

  void Accept(std::unique_ptr<net::TcpStream> stream) {
    const uint64_t id = next_++;
    tracker_.Opened(id, stream->peer_host());
    ClientConnection& client = connections_[id];
    client.stream = std::move(stream);
    client.silence = loop_->After(kSilence, [this, id] {
      if (tracker_.IsSilent(id)) Drop(id);
    });
    client.stream->Start([this, id](std::string_view bytes) { Do(tracker_.Received(id, bytes)); },
                         [this, id](const Status&) { Drop(id); });
  }

  void Drop(uint64_t id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    loop_->Cancel(found->second.silence);
    connections_.erase(found);
    Do(tracker_.Closed(id));
  }

  void Do(const RabitTracker::Actions& actions) {
    for (const RabitAction& action : actions) {
      switch (action.kind) {
        case RabitAction::Kind::kSend:
          Send(action);
          break;
        case RabitAction::Kind::kClose:
          Close(action);
          break;
        case RabitAction::Kind::kAlarm:
          net::SendOnce(loop_, action.host, action.port, action.text, kAlarmLimit);
          break;
        case RabitAction::Kind::kPrint:
        case RabitAction::Kind::kNote:
          on_line_(action.text);
          break;
      }
    }
  }

  void Send(const RabitAction& action) {
    const auto found = connections_.find(action.connection);
    if (found == connections_.end()) return;
    found->second.stream->Send(action.text);
    if (found->second.stream->queued_bytes() <= kMostUnread) return;
    on_line_("dropped " + found->second.stream->peer_host() + ", which does not read");
    Drop(action.connection);
  }

  void Close(const RabitAction& action) {
    const auto found = connections_.find(action.connection);
    if (found == connections_.end()) return;
    if (!action.text.empty()) {
      on_line_("refused " + found->second.stream->peer_host() + ": " + action.text);
    }
    found->second.stream->Finish();
  }

  net::Loop* const loop_;
  const OnLine on_line_;
  RabitTracker tracker_;
  std::map<uint64_t, ClientConnection> connections_;
  uint64_t next_ = 1;
  std::unique_ptr<net::TcpServer> server_;
};

}  // namespace

Result<std::unique_ptr<RabitTrackerServer>> RabitTrackerServer::Start(
    net::Loop* loop, const RabitTrackerOptions& options, OnLine on_line) {
  if (options.workers < 1 || options.workers > kMostWorkers) {
    return InvalidArgument("got " + std::to_string(options.workers) + " workers, expected 1 … " +
                           std::to_string(kMostWorkers));
  }
  auto server = std::make_unique<SocketRabitServer>(loop, options.workers, std::move(on_line));
  TRY(server->Listen(options));
  return std::unique_ptr<RabitTrackerServer>(std::move(server));
}

Status RunRabitTracker(const RabitTrackerOptions& options) {
  SetLogName("rabit-tracker");
  net::Loop loop;
  OutputStream out(STDOUT_FILENO);
  const auto print = [&out](const std::string& line) {
    const bool ended = !line.empty() && line.back() == '\n';
    out.Write(ended ? line : line + "\n");
  };
  TRY_ASSIGN(const std::unique_ptr<RabitTrackerServer> server,
             RabitTrackerServer::Start(&loop, options, print));
  for (const int signal : {SIGTERM, SIGINT}) loop.WatchSignal(signal, [&] { loop.Stop(); });
  loop.Run();
  return out.status();
}

}  // namespace shoal::rendezvous
