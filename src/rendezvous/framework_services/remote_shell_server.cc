#include <signal.h>

#include <map>
#include <utility>

#include "base/log.h"
#include "net/websocket.h"
#include "rendezvous/framework_services/remote_shell.h"
#include "rendezvous/framework_services/remote_shell_token.h"
#include "rendezvous/launcher/program.h"
#include "rendezvous/protocol/connection.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

constexpr size_t kMostUnread = size_t{1} << 20;  // queued for a client that does not read

// One session per connection: a Program whose output is relayed as fast as the client reads. A
// session outlives its client until the command has ended.
class SocketShellServer final : public RemoteShellServer {
 public:
  SocketShellServer(net::Loop* loop, RemoteShellServerOptions options)
      : loop_(loop), options_(std::move(options)), token_(RemoteShellToken(options_.token)) {}

  ~SocketShellServer() override {
    for (const auto& [id, session] : sessions_) loop_->Cancel(session.silence);
  }

  Status Listen() {
    net::ServerOptions listen;
    listen.host = options_.host;
    listen.port = options_.port;
    listen.path = std::string(kPath);
    listen.connections = options_.commands + 64;
    listen.limits.message_bytes = kMostCommandBytes * 2;  // as JSON
    TRY_ASSIGN(server_, net::WebSocketServer::Listen(loop_, std::move(listen), [this](auto socket) {
                 Accept(std::move(socket));
               }));
    return Status::Ok();
  }

  uint16_t port() const override { return server_->port(); }
  size_t running() const override {
    size_t count = 0;
    for (const auto& [id, session] : sessions_) count += session.program != nullptr ? 1 : 0;
    return count;
  }

 private:
  struct Session {
    std::unique_ptr<Connection>
        connection;  // none: its client is lost, and the command being ended
    std::unique_ptr<Program> program;
    net::Loop::Id silence = 0;
  };

  void Accept(std::unique_ptr<net::WebSocket> socket) {
    const uint64_t id = next_++;
    Connection::Callbacks calls;
    calls.on_proved = [this, id](const json::object& hello) { Begin(id, hello); };
    calls.on_message = [this, id](const std::string& type, const json::object& message) {
      Said(id, type, message);
    };
    calls.on_binary = [this, id](std::string_view) { Lose(id); };
    calls.on_gone = [this, id] { Lose(id); };
    sessions_[id].connection =
        Connection::Greet(loop_, std::move(socket), token_, std::move(calls));
  }

  void Begin(uint64_t id, const json::object& hello) {
    Hear(id);
    const Status status = Run(id, hello);
    if (status.ok()) return;
    Session& session = sessions_.at(id);
    LogWarning("refused a command from {}: {}", session.connection->address(), status.message());
    session.connection->Send("failed", {{"text", status.message()}});
    session.connection->Close("failed");
  }

  Status Run(uint64_t id, const json::object& hello) {
    if (GetStringOr(hello, "kind", "") != "shell")
      return InvalidArgument("expected a hello of kind shell");
    TRY_ASSIGN(const std::string command, GetString(hello, "command"));
    if (command.empty() || command.size() > kMostCommandBytes ||
        command.find('\0') != std::string::npos) {
      return InvalidArgument("got a command of " + std::to_string(command.size()) +
                             " bytes, expected 1 … " + std::to_string(kMostCommandBytes) +
                             " without a zero byte");
    }
    if (running() >= options_.commands)
      return ResourceExhausted(std::to_string(running()) + " commands run already");
    ProgramSpec spec;
    spec.process.name = "command-" + std::to_string(id);
    spec.process.argv = {"/bin/sh", "-c", command};
    spec.process.env = options_.env;
    ProgramCallbacks calls;
    calls.on_output = [this, id](int, std::string_view bytes) { return Print(id, bytes); };
    calls.on_report = [](const json::object&) {};
    calls.on_end = [this, id](const host::ProcessExit& exit) { Ended(id, exit); };
    TRY_ASSIGN(auto program,
               Program::Start(loop_, std::move(spec), options_.isolation, std::move(calls)));
    Session& session = sessions_.at(id);
    session.program = std::move(program);
    session.connection->OnDrain([this, id] { Drained(id); });
    return Status::Ok();
  }

  void Said(uint64_t id, const std::string& type, const json::object& message) {
    Hear(id);
    Session& session = sessions_.at(id);
    if (type == "heartbeat") {
      session.connection->Send("heartbeat", {});
    } else if (type == "signal" && session.program != nullptr) {
      const int64_t signal = GetIntOr(message, "signal", 0);
      if (signal == SIGKILL) return session.program->Kill();
      if (signal > 0 && signal < NSIG) session.program->Signal(static_cast<int>(signal));
    }
  }

  // Restarts the client's silence timer.
  void Hear(uint64_t id) {
    Session& session = sessions_.at(id);
    loop_->Cancel(session.silence);
    session.silence = loop_->After(options_.silence, [this, id] { Lose(id); });
  }

  bool Print(uint64_t id, std::string_view bytes) {
    Session& session = sessions_.at(id);
    if (session.connection == nullptr) return true;
    session.connection->SendBinary(std::string(bytes));
    return session.connection->queued_bytes() <= kMostUnread;
  }

  void Drained(uint64_t id) {
    const auto found = sessions_.find(id);
    if (found != sessions_.end() && found->second.program != nullptr)
      found->second.program->Resume();
  }

  void Ended(uint64_t id, const host::ProcessExit& exit) {
    Session& session = sessions_.at(id);
    Later(std::move(session.program));
    if (session.connection == nullptr) return Erase(id);
    session.connection->Send("end", {{"exit_code", exit.exit_code}, {"signal", exit.signal}});
    session.connection->Close("ended");
  }

  // The client is gone: ends its command.
  void Lose(uint64_t id) {
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) return;
    Session& session = found->second;
    if (session.program == nullptr) return Erase(id);
    if (session.connection != nullptr) Later(std::move(session.connection));
    session.program->Resume();  // which may bring its end
    if (session.program != nullptr) session.program->Drain(options_.grace, 0);
  }

  void Erase(uint64_t id) {
    auto node = sessions_.extract(id);
    if (node.empty()) return;
    loop_->Cancel(node.mapped().silence);
    Later(std::move(node.mapped().connection));
  }

  // Destroys it later, not from within its own callback.
  template <typename T>
  void Later(std::unique_ptr<T> done) {
    loop_->After(Duration::zero(), [held = std::shared_ptr<T>(std::move(done))] {});
  }

  net::Loop* const loop_;
  const RemoteShellServerOptions options_;
  const std::string token_;
  std::map<uint64_t, Session> sessions_;
  uint64_t next_ = 1;
  std::unique_ptr<net::WebSocketServer> server_;
};

}  // namespace

Result<std::unique_ptr<RemoteShellServer>> RemoteShellServer::Start(
    net::Loop* loop, RemoteShellServerOptions options) {
  if (options.token.empty()) return InvalidArgument("got no token to prove");
  auto server = std::make_unique<SocketShellServer>(loop, std::move(options));
  TRY(server->Listen());
  return std::unique_ptr<RemoteShellServer>(std::move(server));
}

Status RunRemoteShellServer(RemoteShellServerOptions options) {
  net::Loop loop;
  TRY_ASSIGN(const std::unique_ptr<RemoteShellServer> server,
             RemoteShellServer::Start(&loop, std::move(options)));
  for (const int signal : {SIGTERM, SIGINT}) loop.WatchSignal(signal, [&] { loop.Stop(); });
  loop.Run();
  return Status::Ok();
}

}  // namespace shoal::rendezvous
