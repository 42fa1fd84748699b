#include "net/unix_http.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "net/http_exchange.h"

namespace shoal::net {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr size_t kMaxRefusal = 64 << 10;

Result<UniqueFd> Connect(const std::string& path, Deadline deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return InvalidArgument("the socket's path \"" + path + "\" is empty or too long");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot make a socket");
  while (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EINTR) continue;
    if (errno == ECONNREFUSED) return Unavailable(path + ": no server listens there");
    if (errno != EAGAIN) return ErrnoStatus(errno, path);
    // Its queue of connections is full.
    if (SteadyClock::now() >= deadline) return DeadlineExceeded(path + ": it does not accept");
    ::poll(nullptr, 0, 5);
  }
  return fd;
}

Result<std::unique_ptr<HttpClientExchange>> Begin(const std::string& path,
                                                  const HttpRequest& request, bool upgrade,
                                                  Deadline deadline) {
  TRY_ASSIGN(UniqueFd fd, Connect(path, deadline));
  return BeginExchange(PlainByteChannel(std::move(fd)),
                       RenderRequest(request, "localhost", upgrade ? "tcp" : ""), deadline);
}

}  // namespace

Result<HttpReply> UnixHttp::Call(const HttpRequest& request, milliseconds timeout,
                                 size_t max_body) const {
  const Deadline deadline = SteadyClock::now() + timeout;
  TRY_ASSIGN(const auto stream, Begin(path_, request, false, deadline));
  HttpReply reply = stream->head();
  TRY(ReadWholeBody(stream.get(), deadline, max_body, &reply.body));
  return reply;
}

Result<std::unique_ptr<HttpStream>> UnixHttp::Open(const HttpRequest& request,
                                                   milliseconds timeout) const {
  TRY_ASSIGN(auto stream, Begin(path_, request, false, SteadyClock::now() + timeout));
  return std::unique_ptr<HttpStream>(std::move(stream));
}

Result<Upgraded> UnixHttp::Upgrade(const HttpRequest& request, milliseconds timeout) const {
  const Deadline deadline = SteadyClock::now() + timeout;
  TRY_ASSIGN(const auto stream, Begin(path_, request, true, deadline));
  constexpr int kSwitching = 101;
  if (stream->head().status == kSwitching) {
    Upgraded upgraded;
    const auto channel = stream->Release(&upgraded.early);
    upgraded.fd.Reset(::fcntl(channel->fd(), F_DUPFD_CLOEXEC, 0));
    if (!upgraded.fd.valid()) return ErrnoStatus(errno, "cannot keep the connection");
    return upgraded;
  }
  std::string body;
  TRY(ReadWholeBody(stream.get(), deadline, kMaxRefusal, &body));
  return FailedPrecondition("got status " + std::to_string(stream->head().status) +
                            " instead of a connection: " + body);
}

}  // namespace shoal::net
