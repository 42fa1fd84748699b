// Runs a command in another task of the job as rsh would, without an account, a key or a daemon on
// the machine: mpirun starts its daemons through it (docs/adr/0070).
//
//   mpirun ── shoal mpi-agent worker-1 orted … ──(token, WebSocket)──> shoal mpi-worker ── orted …
//
// The server runs in each worker's task, and commands get that task's environment, limits and
// namespaces; the client replaces rsh. Messages: docs/formats/rendezvous.md. Both belong to their
// loop's thread, which must be the process's main thread (launcher/program.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "host/process/isolation.h"
#include "net/event_loop.h"

namespace shoal::rendezvous {

// Longest command line: the kernel's limit for one argument.
inline constexpr size_t kMostCommandBytes = (128 << 10) - 1;

struct RemoteShellServerOptions {
  std::string host = "127.0.0.1";  // numeric, to listen at
  uint16_t port = 0;               // 0: any
  std::string token;               // the job's
  std::vector<std::string> env;    // "NAME=value", exactly what commands get
  host::Isolation isolation;
  size_t commands = 1024;  // at once; more are refused
  Duration grace =
      std::chrono::seconds(2);  // from SIGTERM to SIGKILL for commands whose client is lost
  Duration silence = std::chrono::seconds(30);  // of a client; then it counts as lost
};

// Runs commands for every client that proves the job's token, until destroyed; then no process of
// them is left.
class RemoteShellServer {
 public:
  // FailedPrecondition for a port that is taken.
  static Result<std::unique_ptr<RemoteShellServer>> Start(net::Loop* loop,
                                                          RemoteShellServerOptions options);
  virtual ~RemoteShellServer() = default;
  virtual uint16_t port() const = 0;
  virtual size_t running() const = 0;  // commands
};

// Serves until SIGTERM or SIGINT.
Status RunRemoteShellServer(RemoteShellServerOptions options);

struct RemoteCommandEnd {
  int exit_code = -1;  // valid if signal is 0
  int signal = 0;
};

struct RemoteCommandSpec {
  std::string host;     // of the server
  uint16_t port = 0;    //
  std::string token;    // the job's
  std::string name;     // "worker-1", for messages
  std::string command;  // for /bin/sh -c
  // How long to dial until a server that knows the token answers.
  Duration give_up_after = std::chrono::seconds(30);
};

// A running command; destroying it ends the command.
class RemoteCommand {
 public:
  // Its output, standard output and error merged.
  using OnOutput = std::function<void(std::string_view bytes)>;
  // Once, last, and never from within a method. An error if the command could not be started or its
  // server was lost.
  using OnEnd = std::function<void(Result<RemoteCommandEnd> end)>;
  static std::unique_ptr<RemoteCommand> Start(net::Loop* loop, const RemoteCommandSpec& command,
                                              OnOutput on_output, OnEnd on_end);
  virtual ~RemoteCommand() = default;
  // To the command's process group.
  virtual void Signal(int signal) = 0;
};

// Runs a command to its end: output goes to standard output; SIGTERM, SIGINT and SIGHUP are
// forwarded to the command.
Result<RemoteCommandEnd> RunRemoteCommand(const RemoteCommandSpec& command);

}  // namespace shoal::rendezvous
