#include "net/tcp_keep_alive.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstddef>

namespace shoal::net {
namespace {

constexpr int kIdleSeconds = 10;  // before the first probe,
constexpr int kBetweenSeconds = 5;
constexpr int kProbes = 4;  // together kPeerSilence
static_assert(std::chrono::seconds(kIdleSeconds + kProbes * kBetweenSeconds) == kPeerSilence);

}  // namespace

void SetKeepAlive(int fd) {
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kBetweenSeconds, sizeof kBetweenSeconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
}

void SetKeepAlive(int fd, Duration limit) {
  SetKeepAlive(fd);
  const auto milliseconds =
      static_cast<unsigned>(std::chrono::duration_cast<std::chrono::milliseconds>(limit).count());
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}

bool PeerLivenessCheck::IsSilent(int fd, TimePoint now) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      size < offsetof(tcp_info, tcpi_last_ack_recv) + sizeof info.tcpi_last_ack_recv) {
    return false;
  }
  // Sent again without an answer: data, or probes of a full window or an idle connection.
  if (info.tcpi_retransmits == 0 && info.tcpi_probes == 0) {
    since_.reset();
    return false;
  }
  const TimePoint acknowledged = now - std::chrono::milliseconds(info.tcpi_last_ack_recv);
  if (!since_.has_value() || acknowledged > *since_) since_ = now;
  return now - *since_ >= kPeerSilence;
}

}  // namespace shoal::net
