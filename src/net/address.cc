#include "net/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/file.h"

namespace shoal::net {

Result<HostPort> ParseHostPort(std::string_view text) {
  const auto wrong = [text](std::string_view why) {
    return InvalidArgument("address '" + std::string(text) + "': " + std::string(why) +
                           ", expected host:port");
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("the port is missing");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong("a host with colons stands in brackets");
  }
  if (host.empty()) return wrong("the host is missing");
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return wrong("the port is not a number from 0 to 65535");
  }
  return HostPort{std::string(host), port};
}

std::string FormatHostPort(std::string_view host, uint16_t port) {
  const bool brackets = host.find(':') != std::string_view::npos;
  std::string text = brackets ? "[" + std::string(host) + "]" : std::string(host);
  return text + ":" + std::to_string(port);
}

bool IsLoopback(std::string_view host) {
  const std::string text(host);
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

namespace {

Result<std::string> LocalHostOfRoute(const addrinfo& to) {
  UniqueFd fd(::socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot make a socket");
  if (::connect(fd.get(), to.ai_addr, to.ai_addrlen) != 0) {
    return Unavailable(std::string("no route to the coordinator: ") + std::strerror(errno));
  }
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&local), &size) != 0) {
    return ErrnoStatus(errno, "getsockname");
  }
  char text[NI_MAXHOST] = {};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&local), size, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) != 0) {
    return Internal("the local address of the route to the coordinator has no text form");
  }
  return std::string(text);
}

}  // namespace

Result<std::string> AdvertisedHost(std::string_view coordinator_host) {
  if (IsLoopback(coordinator_host)) return std::string(coordinator_host);
  const std::string host(coordinator_host);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), "9", &hints, &found);
  if (error != 0) return Unavailable("cannot resolve " + host + ": " + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  return LocalHostOfRoute(*found);
}

}  // namespace shoal::net
