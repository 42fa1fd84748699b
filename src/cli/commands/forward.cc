// `shoal forward JOB TASK [LOCAL:]PORT`: forwards a local port to a port of a running task, for
// TensorBoard, debuggers and similar.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <memory>
#include <thread>

#include "cli/commands/commands.h"
#include "cli/jobs/open_jobs.h"
#include "cli/jobs/task_name.h"
#include "cli/terminal/report.h"
#include "engine/exec/stream_pump.h"

namespace shoal::cli {
namespace {

constexpr int kMostConnections = 256;

struct ForwardArguments {
  std::string job;
  std::string task;
  std::string ports;
};

struct Ports {
  uint16_t local = 0;
  uint16_t task = 0;
};

Result<Ports> ParsePorts(const std::string& text) {
  const Status wrong = InvalidArgument(
      "got \"" + text + "\", expected PORT or LOCAL:PORT, numbers from 1 to 65535 (LOCAL 0: any)");
  const auto number = [](std::string_view digits, uint16_t* out) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *out);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  Ports ports;
  const size_t colon = text.find(':');
  const std::string_view task = colon == std::string::npos
                                    ? std::string_view(text)
                                    : std::string_view(text).substr(colon + 1);
  if (!number(task, &ports.task) || ports.task == 0) return wrong;
  ports.local = ports.task;
  if (colon != std::string::npos && !number(std::string_view(text).substr(0, colon), &ports.local))
    return wrong;
  return ports;
}

// Listens on the loopback interface only.
Result<UniqueFd> Listen(uint16_t* port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (fd.valid()) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(*port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (!fd.valid() || ::bind(fd.get(), any, size) != 0 || ::listen(fd.get(), 64) != 0 ||
      ::getsockname(fd.get(), any, &size) != 0)
    return ErrnoStatus(
        errno,
        fmt::format("cannot listen at port {} of this machine; try 0:PORT for any other", *port));
  *port = ntohs(address.sin_port);
  return fd;
}

struct Target {
  controller::Jobs* jobs = nullptr;
  std::string job;
  NamedTask task;
  uint16_t port = 0;
  std::atomic<int> open{0};
};

void Serve(Target* target, UniqueFd client) {
  const auto task =
      target->jobs->DialTask(target->job, target->task.role, target->task.index, target->port);
  if (task.ok()) {
    engine::PumpStreams(client.get(), task->get());
  } else {
    PrintNote(task.status().message());
  }
  --target->open;
}

// Accepts connections until an error; each has a thread of its own, at most kMostConnections at
// once.
Status Forward(const Context& context, const ForwardArguments& arguments) {
  TRY_ASSIGN(Ports ports, ParsePorts(arguments.ports));
  Target target;
  TRY_ASSIGN(target.task, ParseTaskName(arguments.task));
  TRY_ASSIGN(const auto jobs, OpenJobs(context));
  TRY_ASSIGN(const controller::JobView job, jobs->Find(arguments.job));
  target.jobs = jobs.get();
  target.job = job.record.id;
  target.port = ports.task;
  // Checks that the task exists without opening a connection, which may be the only one that its
  // program accepts. Port 0 has no listener; the program may begin to listen later.
  const Status there = jobs->DialTask(target.job, target.task.role, target.task.index, 0).status();
  if (!there.ok() && there.code() != Code::kUnavailable) return there;
  TRY_ASSIGN(const UniqueFd listener, Listen(&ports.local));
  const std::string where = fmt::format("127.0.0.1:{}", ports.local);
  const std::string from = fmt::format("{}-{}:{}", target.task.role, target.task.index, ports.task);
  TRY(PrintOut(context.json ? ToText(json::object{{"listening", where}, {"task", from}}) + "\n"
                            : fmt::format("{} -> {} (Ctrl-C ends it)\n", where, from)));
  for (;;) {
    UniqueFd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid() && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!client.valid()) return ErrnoStatus(errno, "cannot accept connections");
    if (target.open >= kMostConnections) {
      PrintNote("a connection was closed: there are 256 already");
      continue;
    }
    ++target.open;
    std::thread(Serve, &target, std::move(client)).detach();
  }
}

constexpr const char* kForwardFooter = R"help(Examples:
  shoal forward mnist worker-0 6006           TensorBoard of worker-0 at http://127.0.0.1:6006
  shoal forward mnist worker-0 8080:6006      the same on local port 8080

Runs until it is interrupted (Ctrl-C). Only programs on this machine can connect.)help";

}  // namespace

void AddForward(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<ForwardArguments>();
  CLI::App* sub = app.add_subcommand("forward", "Forward a local port to a port of a running task");
  sub->add_option("JOB", arguments->job, "Name of the job, or an unambiguous prefix")->required();
  sub->add_option("TASK", arguments->task, "Task, for example worker-0")->required();
  sub->add_option("PORT", arguments->ports,
                  "Port of the task, and the local port to listen on [same number]")
      ->required()
      ->type_name("[LOCAL:]PORT");
  sub->footer(kForwardFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      // Serving returns only with an error; a signal ends the process.
      return PrintError(Forward(context, *arguments));
    };
  });
}

}  // namespace shoal::cli
