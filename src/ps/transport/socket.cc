#include "ps/transport/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "net/address.h"
#include "net/tcp_keep_alive.h"

namespace shoal::ps {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<AddressList> Resolve(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                  std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    return Unavailable(fmt::format("{}: {}", net::FormatHostPort(host, port), gai_strerror(error)));
  }
  return AddressList(found, &freeaddrinfo);
}

Status ConnectOne(const addrinfo& to, TimePoint deadline, UniqueFd* fd) {
  fd->Reset(::socket(to.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd->valid()) return ErrnoStatus(errno, "socket");
  if (::connect(fd->get(), to.ai_addr, to.ai_addrlen) == 0) return Status::Ok();
  if (errno != EINPROGRESS) return ErrnoStatus(errno, "connect");
  TRY(WaitSocket(fd->get(), POLLOUT, deadline));
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd->get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? Status::Ok() : ErrnoStatus(error, "connect");
}

uint16_t BoundPort(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return address.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

Result<UniqueFd> ListenTcp(const std::string& host, uint16_t port, uint16_t* bound) {
  TRY_ASSIGN(const AddressList list, Resolve(host, port, AI_PASSIVE));
  const int one = 1;
  UniqueFd fd(::socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const std::string where = "cannot listen on " + net::FormatHostPort(host, port);
  if (!fd.valid()) return ErrnoStatus(errno, where);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(fd.get(), list->ai_addr, list->ai_addrlen) != 0) return ErrnoStatus(errno, where);
  if (::listen(fd.get(), SOMAXCONN) != 0) return ErrnoStatus(errno, where);
  *bound = BoundPort(fd.get());
  return fd;
}

Result<UniqueFd> ConnectTcp(const std::string& address, Duration timeout) {
  const TimePoint deadline = RealClock::Get()->Now() + timeout;
  TRY_ASSIGN(const auto target, net::ParseHostPort(address));
  if (target.port == 0) return Unavailable(address + ": the server has no port yet");
  TRY_ASSIGN(const AddressList list, Resolve(target.host, target.port, 0));
  Status last;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    UniqueFd fd;
    last = ConnectOne(*at, deadline, &fd);
    if (!last.ok()) continue;
    SetNoDelay(fd.get());
    net::SetKeepAlive(fd.get());
    return fd;
  }
  return Unavailable(fmt::format("{}: {}", address, last.message()));
}

void SetNoDelay(int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

std::string PeerName(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
  ucred peer{};
  socklen_t peer_size = sizeof peer;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    if (address.ss_family == AF_UNIX &&
        ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) == 0) {
      return fmt::format("process {} of this host", peer.pid);
    }
    ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV);
  }
  return fmt::format("{}:{}", host, port);
}

Status WaitSocket(int fd, short events, TimePoint deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - RealClock::Get()->Now());
    if (left.count() <= 0) return DeadlineExceeded("no answer in time");
    pollfd wait{fd, events, 0};
    const int ready =
        ::poll(&wait, 1, static_cast<int>(std::min<int64_t>(left.count() + 1, 1'000'000)));
    if (ready > 0) return Status::Ok();
    if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "poll");
  }
}

long SendSome(int fd, const char* bytes, size_t size) {
  for (;;) {
    const ssize_t sent = ::send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0 || errno != EINTR) return sent;
  }
}

long ReceiveSome(int fd, char* to, size_t size) {
  for (;;) {
    const ssize_t got = ::recv(fd, to, size, MSG_DONTWAIT);
    if (got >= 0 || errno != EINTR) return got;
  }
}

}  // namespace shoal::ps
