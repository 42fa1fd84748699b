// Ports that a task will listen on, reserved before its program starts (design.md §6.2).
//
// A lease is a bound socket that never listens. It is bound exclusively, so that no other program
// or launcher gets the port, and then gets SO_REUSEADDR and SO_REUSEPORT, so that a server that
// sets either option can bind over it. Used by launchers.
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

// A closed range of ports.
struct PortRange {
  int first = 0;
  int last = 0;  // inclusive
  int size() const { return last - first + 1; }
};

// Ranges from which ports are leased: above 10000 and outside the kernel's ephemeral range, in
// which any outgoing connection could take a port after its release; [10000, 65535] if that leaves
// fewer than 2000 ports. `ephemeral` is net.ipv4.ip_local_port_range.
std::vector<PortRange> LeaseRanges(PortRange ephemeral);
// Reads it from /proc; the kernel's default if that fails.
PortRange EphemeralRange();

// The port is bound while the object exists. Movable.
class PortLease {
 public:
  // Source of uniform 64-bit random numbers; injected for deterministic tests.
  using Random = std::function<uint64_t()>;

  // Leases a free port of `ranges`. ResourceExhausted if there is none.
  static Result<PortLease> Acquire(const std::vector<PortRange>& ranges, const Random& random);
  // Leases this port (a coordinator's earlier one, an engine's $PORT0). AlreadyExists if it is in
  // use.
  static Result<PortLease> AcquirePort(uint16_t port);

  uint16_t port() const { return port_; }
  bool held() const { return fd_.valid(); }
  // Releases the port; for `ports: {plain: true}`, immediately before the program is started.
  void Release() { fd_.Reset(); }

 private:
  PortLease(uint16_t port, UniqueFd fd) : port_(port), fd_(std::move(fd)) {}
  uint16_t port_;
  UniqueFd fd_;
};

// A process that listens on a TCP port of this machine (any address, IPv4 or IPv6).
struct Listener {
  pid_t pid = 0;  // 0: a process whose descriptors this user may not see
  uid_t uid = 0;  // owner of the socket
  std::string address;
  std::string program;  // comm
};

// The listeners of a port. Cost: /proc/net/tcp up to the last listener, and the descriptors of
// `pids`; those of all processes are read only if no process of `pids` listens.
std::vector<Listener> FindListeners(uint16_t port, const std::vector<pid_t>& pids);

// The inodes of the sockets that listen on each of the ports, ascending. Cost: /proc/net/tcp and
// tcp6 up to the last listener, once for all ports.
std::vector<std::vector<uint64_t>> ListeningSockets(const std::vector<uint16_t>& ports);

// Unavailable, with what to do, if the processes of this machine cannot reach each other through
// 127.0.0.1, as in a new network namespace, whose loopback interface is down. Sends nothing.
Status CheckLoopback();

// False if /proc belongs to another PID namespace than this process (`unshare --pid --fork` without
// --mount-proc): process numbers found there are not those that this process knows, and
// CheckPortOwner takes every listener for the task's own.
bool ProcShowsOwnNamespace();

// Whether a socket is bound to the port without listening; such sockets are in no table of the
// kernel. Leases of this user do not count. Call it after the programs that may use the port have
// ended. While their closed connections occupy the port (TIME_WAIT) the result is false. Cost: all
// of /proc/net/tcp and tcp6, two binds.
bool IsBoundWithoutListener(uint16_t port);

enum class PortOwner : uint8_t { kNone, kTaskTree, kOther };

// Whether only processes of the tree listen on the port. Otherwise sets `stranger` (may be null) to
// the other listener. A socket of an invisible process counts as foreign unless its owner is this
// user or the user of a process in the tree.
PortOwner CheckPortOwner(uint16_t port, const std::vector<pid_t>& tree, Listener* stranger);

}  // namespace shoal::host
