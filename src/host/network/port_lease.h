// Ports that a task will listen on, reserved before its program starts (design.md §6.2).
//
// A lease is a bound socket that never listens. It is bound alone, so that no other program and no
// other launcher gets the port, and only then given SO_REUSEADDR and SO_REUSEPORT, so that a server
// which sets either of them binds right over it. Made by launchers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace shoal::host {

struct PortRange {
  int first = 0;
  int last = 0;  // inclusive
  int size() const { return last - first + 1; }
};

// Where to look for ports: what lies above 10000 outside the kernel's ephemeral range (there a port
// could be taken by any outgoing connection as soon as the lease is let go), or, if that leaves
// fewer than 2000, [10000, 65535]. `ephemeral` is net.ipv4.ip_local_port_range.
std::vector<PortRange> LeaseRanges(PortRange ephemeral);
// Reads it from /proc; the kernel's default if that fails.
PortRange EphemeralRange();

// Bound as long as it lives. Movable.
class PortLease {
 public:
  // Random numbers, uniform over 64 bits; injected so that tests see the same ports again.
  using Random = std::function<uint64_t()>;

  // Any free port of `ranges`. ResourceExhausted if none is.
  static Result<PortLease> Acquire(const std::vector<PortRange>& ranges, const Random& random);
  // This port (a coordinator's earlier one, an engine's $PORT0). AlreadyExists if it is taken.
  static Result<PortLease> AcquirePort(uint16_t port);

  uint16_t port() const { return port_; }
  bool held() const { return fd_.valid(); }
  // Lets it go: for `ports: {plain: true}`, immediately before the program is started.
  void Release() { fd_.Reset(); }

 private:
  PortLease(uint16_t port, UniqueFd fd) : port_(port), fd_(std::move(fd)) {}
  uint16_t port_;
  UniqueFd fd_;
};

// Who listens on a TCP port here (any address, IPv4 or IPv6).
struct Listener {
  pid_t pid = 0;  // 0: a process whose descriptors we may not see
  uid_t uid = 0;  // the socket's
  std::string address;
  std::string program;  // comm
};

// Empty if nobody listens. Cost: /proc/net/tcp up to the last listener, and the descriptors of
// `pids`; those of all processes are read only if it is none of these.
std::vector<Listener> FindListeners(uint16_t port, const std::vector<pid_t>& pids);

// The inodes of the sockets that listen on each of the ports, ascending. Cost: /proc/net/tcp and
// tcp6 up to the last listener, once for all ports.
std::vector<std::vector<uint64_t>> ListeningSockets(const std::vector<uint16_t>& ports);

// Whether somebody holds a port on which nobody listens: with a socket that is only bound, and so
// stands in no table. A lease of this user's does not count. For when the programs that may use the
// port have ended; while their closed connections keep it (TIME_WAIT) nobody can tell, and it is
// false. Cost: all of /proc/net/tcp and tcp6, two binds.
bool IsBoundWithoutListener(uint16_t port);

enum class PortOwner : uint8_t { kNone, kTaskTree, kOther };

// Whether the tree's own processes, and only they, listen on the port. `stranger` gets who does
// instead (may be null). A socket of a process that we may not see is a stranger's unless it is of
// our user or of one in the tree.
PortOwner CheckPortOwner(uint16_t port, const std::vector<pid_t>& tree, Listener* stranger);

}  // namespace shoal::host
