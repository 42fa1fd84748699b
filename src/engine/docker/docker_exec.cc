#include "engine/docker/docker_exec.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

#include "base/file.h"
#include "engine/docker/container_spec.h"

namespace shoal::engine::docker {
namespace {

constexpr size_t kBlock = 64 << 10;
constexpr int kEndReads = 200;  // times 5 ms: how long the daemon may take to know of an end

class DockerExecution final : public Execution {
 public:
  DockerExecution(const DockerApi* api, std::string exec, const ExecSpec& spec)
      : api_(api),
        exec_(std::move(exec)),
        terminal_(spec.terminal),
        fds_{spec.fds[0], spec.fds[1], spec.fds[2]} {}

  Status Start(uint16_t rows, uint16_t columns) {
    TRY_ASSIGN(connection_, api_->StartExec(exec_, terminal_));
    if (terminal_) (void)api_->ResizeExec(exec_, rows, columns);
    return Status::Ok();
  }

  // The daemon passes no signals on; the process is one of this machine's.
  void Signal(int signal) override {
    const auto pid = api_->ExecPid(exec_);
    if (pid.ok() && *pid > 0) ::kill(static_cast<pid_t>(*pid), signal);
  }
  void Resize(uint16_t rows, uint16_t columns) override {
    if (terminal_) (void)api_->ResizeExec(exec_, rows, columns);
  }

  Result<ExecEnd> Wait() override {
    TRY(Take(connection_.early));
    TRY(Carry());
    for (int i = 0; i < kEndReads; ++i) {
      TRY_ASSIGN(const std::optional<int> code, api_->ExecEnd(exec_));
      if (code) return ExecEnd{*code, 0};
      ::poll(nullptr, 0, 5);
    }
    return Unavailable("the command's end is not known: the daemon says that it still runs");
  }

 private:
  // Until the other side has said all.
  Status Carry() {
    const int connection = connection_.fd.get();
    bool input = true;
    std::vector<char> block(kBlock);
    for (;;) {
      pollfd polls[2] = {{connection, POLLIN, 0}, {input ? fds_[0] : -1, POLLIN, 0}};
      if (::poll(polls, 2, -1) < 0 && errno != EINTR) return ErrnoStatus(errno, "poll");
      if (polls[1].revents != 0) {
        const ssize_t got = ::read(fds_[0], block.data(), block.size());
        input = got > 0 && Send({block.data(), static_cast<size_t>(got)}).ok();
        if (!input) ::shutdown(connection, SHUT_WR);
      }
      if (polls[0].revents == 0) continue;
      const ssize_t got = ::recv(connection, block.data(), block.size(), 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) return Status::Ok();
      TRY(Take({block.data(), static_cast<size_t>(got)}));
    }
  }

  // The connection does not block: waits for room.
  Status Send(std::string_view bytes) {
    const int connection = connection_.fd.get();
    while (!bytes.empty()) {
      const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
      if (sent >= 0 || errno == EINTR) continue;
      if (errno != EAGAIN) return ErrnoStatus(errno, "the connection to the command broke");
      pollfd room{connection, POLLOUT, 0};
      ::poll(&room, 1, -1);
    }
    return Status::Ok();
  }

  Status Take(std::string_view bytes) {
    if (terminal_) return WriteAll(fds_[1], bytes);
    std::vector<FrameCutter::Frame> frames;
    TRY(cutter_.Feed(bytes, &frames));
    for (const FrameCutter::Frame& frame : frames)
      TRY(WriteAll(frame.stream == 2 ? fds_[2] : fds_[1], frame.bytes));
    return Status::Ok();
  }

  const DockerApi* const api_;
  const std::string exec_;
  const bool terminal_;
  const int fds_[3];
  net::Upgraded connection_;
  FrameCutter cutter_;
};

}  // namespace

Result<std::unique_ptr<Execution>> ExecInContainer(const DockerApi* api,
                                                   const std::string& container,
                                                   const std::string& job_id,
                                                   const std::string& role, int index,
                                                   const ExecSpec& spec) {
  if (spec.argv.empty() || spec.argv[0].empty())
    return InvalidArgument("got no command to run in the task");
  json::array argv{kLauncherTarget, "enter", "--job",   job_id,
                   "--role",        role,    "--index", std::to_string(index)};
  if (spec.terminal) {
    for (const auto& [word, count] :
         {std::pair("--rows", spec.rows), {"--columns", spec.columns}}) {
      argv.emplace_back(word);
      argv.emplace_back(std::to_string(count));
    }
  }
  for (const std::string& variable : spec.env) {
    argv.emplace_back("--env");
    argv.emplace_back(variable);
  }
  argv.emplace_back("--");
  for (const std::string& word : spec.argv) argv.emplace_back(word);
  const json::object body{{"AttachStdin", true},
                          {"AttachStdout", true},
                          {"AttachStderr", true},
                          {"Tty", spec.terminal},
                          {"Cmd", std::move(argv)}};
  TRY_ASSIGN(std::string exec, api->CreateExec(container, body));
  auto execution = std::make_unique<DockerExecution>(api, std::move(exec), spec);
  TRY(execution->Start(spec.rows, spec.columns));
  return std::unique_ptr<Execution>(std::move(execution));
}

}  // namespace shoal::engine::docker
