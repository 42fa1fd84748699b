// Ports bound ahead of the program that will listen on them. See port_lease.h.
#include "host/network/port_lease.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>

namespace shoal::host {
namespace {

constexpr int kLowest = 10'000;  // lower ones are used by services and by hand-made configurations
constexpr int kHighest = 65'535;
constexpr int kEnough = 2'000;

// Binds the port on every address of both families. EAFNOSUPPORT or EADDRNOTAVAIL where IPv6 is
// off.
int BindAny(int family, uint16_t port, UniqueFd* out) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno;
  sockaddr_storage storage{};
  socklen_t size = 0;
  if (family == AF_INET6) {
    const int off = 0;
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    auto* address = reinterpret_cast<sockaddr_in6*>(&storage);
    address->sin6_family = AF_INET6;
    address->sin6_port = htons(port);
    size = sizeof *address;
  } else {
    auto* address = reinterpret_cast<sockaddr_in*>(&storage);
    address->sin_family = AF_INET;
    address->sin_port = htons(port);
    size = sizeof *address;
  }
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), size) != 0) return errno;
  // Set only now: with SO_REUSEPORT a bind would succeed beside another launcher's lease.
  const int on = 1;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) {
    return errno;
  }
  *out = std::move(fd);
  return 0;
}

int BindPort(uint16_t port, UniqueFd* out) {
  int error = BindAny(AF_INET6, port, out);
  if (error == EAFNOSUPPORT || error == EADDRNOTAVAIL) error = BindAny(AF_INET, port, out);
  return error;
}

}  // namespace

std::vector<PortRange> LeaseRanges(PortRange ephemeral) {
  std::vector<PortRange> ranges;
  int room = 0;
  const PortRange below{kLowest, std::min(kHighest, ephemeral.first - 1)};
  const PortRange above{std::max(kLowest, ephemeral.last + 1), kHighest};
  for (const PortRange& range : {below, above}) {
    if (range.size() <= 0) continue;
    ranges.push_back(range);
    room += range.size();
  }
  if (room < kEnough) return {{kLowest, kHighest}};
  return ranges;
}

PortRange EphemeralRange() {
  PortRange range{32768, 60999};
  auto text = ReadFile("/proc/sys/net/ipv4/ip_local_port_range", 64);
  if (!text.ok()) return range;
  PortRange read;
  const char* end = text->data() + text->size();
  auto [rest, error] = std::from_chars(text->data(), end, read.first);
  while (rest != end && (*rest == ' ' || *rest == '\t')) ++rest;
  if (error != std::errc() || std::from_chars(rest, end, read.last).ec != std::errc()) return range;
  return read.first > 0 && read.first <= read.last && read.last <= kHighest ? read : range;
}

Result<PortLease> PortLease::Acquire(const std::vector<PortRange>& ranges, const Random& random) {
  uint64_t room = 0;
  for (const PortRange& range : ranges) room += static_cast<uint64_t>(std::max(0, range.size()));
  if (room == 0) return InvalidArgument("no range of ports to lease from was given");
  const uint64_t start = random() % room;
  int last_error = 0;
  for (uint64_t step = 0; step < room; ++step) {
    auto offset = static_cast<int>((start + step) % room);
    for (const PortRange& range : ranges) {
      if (offset >= range.size()) {
        offset -= range.size();
        continue;
      }
      const auto port = static_cast<uint16_t>(range.first + offset);
      UniqueFd fd;
      last_error = BindPort(port, &fd);
      if (last_error == 0) return PortLease(port, std::move(fd));
      break;
    }
    if (last_error != EADDRINUSE && last_error != EACCES)
      return ErrnoStatus(last_error, "cannot lease a port");
  }
  return ResourceExhausted("none of the " + std::to_string(room) + " ports from " +
                           std::to_string(ranges.front().first) + " to " +
                           std::to_string(ranges.back().last) +
                           " is free; end programs that hold them (ss -tan shows them)");
}

Result<PortLease> PortLease::AcquirePort(uint16_t port) {
  UniqueFd fd;
  const int error = BindPort(port, &fd);
  if (error == EADDRINUSE) {
    return AlreadyExists("port " + std::to_string(port) +
                         " is taken by another program; `ss -tlnp` shows by which");
  }
  if (error != 0) return ErrnoStatus(error, "cannot lease port " + std::to_string(port));
  return PortLease(port, std::move(fd));
}

}  // namespace shoal::host
