#include "ps/transport/local_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "net/address.h"
#include "ps/transport/socket.h"

namespace shoal::ps {
namespace {

std::string NumericName(const sockaddr* address, socklen_t size) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (::getnameinfo(address, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return {};
  }
  return fmt::format("shoal-ps {} {}", host, port);
}

socklen_t FillAbstract(const std::string& name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  const size_t size = std::min(name.size(), sizeof address->sun_path - 1);
  std::memcpy(address->sun_path + 1, name.data(), size);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
}

Result<UniqueFd> NewSocket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "socket");
  return fd;
}

// Only what is an address of this host can be bound.
bool IsOwn(const addrinfo& at) {
  const UniqueFd fd(::socket(at.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return false;
  sockaddr_storage any{};
  std::memcpy(&any, at.ai_addr, at.ai_addrlen);
  // The port lies at the same place in both families.
  reinterpret_cast<sockaddr*>(&any)->sa_data[0] = reinterpret_cast<sockaddr*>(&any)->sa_data[1] = 0;
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), at.ai_addrlen) == 0;
}

bool OfThisUser(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

Result<UniqueFd> ConnectName(const std::string& name) {
  TRY_ASSIGN(UniqueFd fd, NewSocket());
  sockaddr_un address;
  const socklen_t size = FillAbstract(name, &address);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      !OfThisUser(fd.get())) {
    return NotFound(name);
  }
  return fd;
}

}  // namespace

Result<UniqueFd> ListenLocal(int tcp) {
  sockaddr_storage bound{};
  socklen_t bound_size = sizeof bound;
  if (::getsockname(tcp, reinterpret_cast<sockaddr*>(&bound), &bound_size) != 0) {
    return ErrnoStatus(errno, "getsockname");
  }
  const std::string name = NumericName(reinterpret_cast<const sockaddr*>(&bound), bound_size);
  TRY_ASSIGN(UniqueFd fd, NewSocket());
  sockaddr_un address;
  const socklen_t size = FillAbstract(name, &address);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot listen on the local name '{}'", name));
  }
  return fd;
}

Result<UniqueFd> ConnectLocal(const std::string& address) {
  TRY_ASSIGN(const auto target, net::ParseHostPort(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(target.port);
  if (::getaddrinfo(target.host.c_str(), port.c_str(), &hints, &found) != 0) {
    return NotFound(address);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, &freeaddrinfo);
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    if (!IsOwn(*at)) continue;
    const std::array<std::string, 3> names = {NumericName(at->ai_addr, at->ai_addrlen),
                                              "shoal-ps 0.0.0.0 " + port, "shoal-ps :: " + port};
    for (const std::string& name : names) {
      auto fd = ConnectName(name);
      if (fd.ok()) return fd;
    }
  }
  return NotFound(fmt::format("no server of this host listens on {}", address));
}

bool IsLocalSocket(int fd) {
  int family = 0;
  socklen_t size = sizeof family;
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX;
}

Status SendWithDescriptor(int fd, std::string_view bytes, int descriptor) {
  iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptor)> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  const ssize_t sent = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent != static_cast<ssize_t>(bytes.size())) {
    return Unavailable("the client does not read the welcome");
  }
  return Status::Ok();
}

long ReceiveWithDescriptor(int fd, char* to, size_t size, UniqueFd* descriptor) {
  iovec piece{to, size};
  constexpr size_t kMost = 8;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMost * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return got;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int one = -1;
      std::memcpy(&one, CMSG_DATA(head) + i * sizeof one, sizeof one);
      UniqueFd taken(one);
      if (!descriptor->valid()) *descriptor = std::move(taken);
    }
  }
  // The kernel drops a descriptor for which this process has no number left.
  if ((message.msg_flags & MSG_CTRUNC) != 0 && !descriptor->valid()) {
    errno = EMFILE;
    return -1;
  }
  return got;
}

void WakeOtherEnd(int fd) {
  // A full buffer holds enough wake-ups; the reader notices a dead peer.
  [[maybe_unused]] const long sent = SendSome(fd, "", 1);
}

bool DrainWakeUps(int fd) {
  char bytes[256];
  const long got = ReceiveSome(fd, bytes, sizeof bytes);
  // Should there be more, the socket stays readable.
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

}  // namespace shoal::ps
