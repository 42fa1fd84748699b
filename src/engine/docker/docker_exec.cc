#include "engine/docker/docker_exec.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"
#include "engine/docker/container_spec.h"
#include "engine/exec/remote_exec.h"

namespace shoal::engine::docker {
namespace {

constexpr size_t kBlock = 64 << 10;
constexpr size_t kBlocks = 16;  // read at a time
constexpr int kEndReads = 200;  // times 5 ms: time until the daemon knows the exit code

// The hijacked connection of POST /exec/ID/start, which multiplexes both outputs in frames.
class DockerTransport final : public ExecTransport {
 public:
  DockerTransport(const DockerApi* api, std::string exec, net::Upgraded connection)
      : api_(api), exec_(std::move(exec)), connection_(std::move(connection)) {}

  int fd() const override { return connection_.fd.get(); }

  // Makes the connection non-blocking.
  Status Send(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
      if (sent >= 0 || errno == EINTR) continue;
      if (errno != EAGAIN) return ErrnoStatus(errno, "the connection to the command broke");
      pollfd room{fd(), POLLOUT, 0};
      ::poll(&room, 1, -1);
    }
    return Status::Ok();
  }

  Status Receive(ExecOutput* said) override {
    TRY(Take(std::exchange(connection_.early, {}), said));
    char block[kBlock];
    for (size_t all = 0; all < kBlocks * kBlock;) {
      const ssize_t got = ::recv(fd(), block, sizeof block, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return Status::Ok();
      said->closed = got <= 0;
      if (got <= 0) return Status::Ok();
      TRY(Take({block, static_cast<size_t>(got)}, said));
      all += static_cast<size_t>(got);
    }
    return Status::Ok();
  }

  Result<ExecEnd> GetEnd() override {
    constexpr int kSignalBase = 128;
    for (int i = 0; i < kEndReads; ++i) {
      TRY_ASSIGN(const std::optional<int> code, api_->ExecEnd(exec_));
      if (code && *code > kSignalBase) return ExecEnd{-1, *code - kSignalBase};
      if (code) return ExecEnd{*code, 0};
      ::poll(nullptr, 0, 5);
    }
    return Unavailable("the command's end is not known: the daemon says that it still runs");
  }

 private:
  Status Take(std::string_view bytes, ExecOutput* said) {
    std::vector<FrameCutter::Frame> frames;
    TRY(cutter_.Feed(bytes, &frames));
    for (const FrameCutter::Frame& frame : frames)
      (frame.stream == 2 ? said->err : said->out) += frame.bytes;
    return Status::Ok();
  }

  const DockerApi* const api_;
  const std::string exec_;
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
  json::array argv;
  for (const std::string& word : EnterCommandArgv(kLauncherTarget, job_id, role, index, spec))
    argv.emplace_back(word);
  const json::object body{{"AttachStdin", true},
                          {"AttachStdout", true},
                          {"AttachStderr", true},
                          {"Tty", false},
                          {"Cmd", std::move(argv)}};
  TRY_ASSIGN(std::string exec, api->CreateExec(container, body));
  TRY_ASSIGN(net::Upgraded connection, api->StartExec(exec));
  return MakeRemoteExecution(
      std::make_unique<DockerTransport>(api, std::move(exec), std::move(connection)), spec);
}

}  // namespace shoal::engine::docker
