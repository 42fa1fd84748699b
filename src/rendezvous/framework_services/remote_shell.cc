#include "rendezvous/framework_services/remote_shell.h"

#include <signal.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "base/output_file.h"
#include "rendezvous/framework_services/remote_shell_token.h"
#include "rendezvous/protocol/coordinator_connection.h"

namespace shoal::rendezvous {
namespace {

// Sends the command in its hello and relays output and end. A lost connection ends the command, so
// it never reconnects after the start.
class SocketRemoteCommand final : public RemoteCommand {
 public:
  SocketRemoteCommand(net::Loop* loop, const RemoteCommandSpec& command, OnOutput on_output,
                      OnEnd on_end)
      : loop_(loop),
        name_(command.name),
        on_output_(std::move(on_output)),
        on_end_(std::move(on_end)) {
    CoordinatorConnectionOptions connection_options;
    // A second connection would run the command a second time.
    connection_options.find = [this, address = CoordinatorAddress{command.host, command.port}] {
      return ended_ ? Result<CoordinatorAddress>(Unavailable("the command has ended")) : address;
    };
    connection_options.token = RemoteShellToken(command.token);
    connection_options.who = command.name;
    connection_options.give_up_after = command.give_up_after;
    CoordinatorConnectionCallbacks calls;
    calls.hello = [text = command.command] {
      return json::object{{"kind", "shell"}, {"command", text}};
    };
    calls.on_message = [this](const std::string& type, const json::object& message) {
      Said(type, message);
    };
    calls.on_binary = [this](std::string_view bytes) { on_output_(bytes); };
    calls.on_down = [this](const Status& why) { End(why.With("the command on " + name_)); };
    calls.on_given_up = [this](const Status& why) {
      End(why.ok() ? Unavailable(name_ + " has ended")
                   : why.With("no command can be run on " + name_));
    };
    connection_ =
        CoordinatorConnection::Start(loop, std::move(connection_options), std::move(calls));
  }

  ~SocketRemoteCommand() override { loop_->Cancel(given_up_); }

  void Signal(int signal) override {
    if (connection_->up()) return connection_->Send("signal", {{"signal", signal}});
    loop_->Cancel(given_up_);
    given_up_ = loop_->After(Duration::zero(), [this] {
      End(Cancelled("the command on " + name_ + " was cancelled before it began"));
    });
  }

 private:
  void Said(const std::string& type, const json::object& message) {
    if (type == "failed") {
      return End(FailedPrecondition(name_ + " did not start the command: " +
                                    GetStringOr(message, "text", "it did not say why")));
    }
    if (type != "end") return;
    RemoteCommandEnd end;
    end.exit_code = static_cast<int>(GetIntOr(message, "exit_code", -1) & 0xff);
    end.signal = static_cast<int>(GetIntOr(message, "signal", 0) & 0x7f);
    End(end);
  }

  void End(Result<RemoteCommandEnd> end) {
    if (std::exchange(ended_, true)) return;
    const OnEnd on_end = on_end_;
    on_end(std::move(end));
  }

  net::Loop* const loop_;
  const std::string name_;
  const OnOutput on_output_;
  const OnEnd on_end_;
  bool ended_ = false;
  net::Loop::Id given_up_ = 0;
  std::unique_ptr<CoordinatorConnection> connection_;
};

}  // namespace

std::unique_ptr<RemoteCommand> RemoteCommand::Start(net::Loop* loop,
                                                    const RemoteCommandSpec& command,
                                                    OnOutput on_output, OnEnd on_end) {
  return std::make_unique<SocketRemoteCommand>(loop, command, std::move(on_output),
                                               std::move(on_end));
}

Result<RemoteCommandEnd> RunRemoteCommand(const RemoteCommandSpec& command) {
  net::Loop loop;
  Result<RemoteCommandEnd> result = Internal("the command has not ended");
  OutputStream out(STDOUT_FILENO);
  const auto shell = RemoteCommand::Start(
      &loop, command, [&](std::string_view bytes) { out.Write(bytes); },
      [&](Result<RemoteCommandEnd> end) {
        result = std::move(end);
        loop.Stop();
      });
  for (const int signal : {SIGTERM, SIGINT, SIGHUP})
    loop.WatchSignal(signal, [&, signal] { shell->Signal(signal); });
  loop.Run();
  TRY(out.status());
  return result;
}

}  // namespace shoal::rendezvous
