// Whether processes move, and if not, what they wait for: bytes over their TCP connections, what
// each of their threads sleeps in. Read by launchers, which tell it of tasks that stand still.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace shoal::host {

// One TCP connection of a process, listeners and those that are over left out.
struct TcpConnection {
  uint64_t inode = 0;
  std::string local;  // "127.0.0.1:4000"
  std::string peer;
  std::string state;   // "established", "syn-sent", "close-wait" …
  int64_t unread = 0;  // bytes that have come and that the program has not read
  int64_t unsent = 0;  // bytes that the program has written and the peer has not acknowledged
  int64_t moved = 0;   // received and acknowledged, in the connection's life
};

// Those that these processes hold, in no order. Needs the right to see their descriptors: processes
// of another user show none. Unavailable if the kernel gives no socket diagnostics. Costs one dump
// of all the machine's connections and a look at each descriptor of the processes.
Result<std::vector<TcpConnection>> TcpConnectionsOf(const std::vector<pid_t>& pids);

// Counts what goes over the connections of a changing set of processes. Not thread-safe.
class NetworkMeter {
 public:
  // Bytes since the first call, which gives 0. What a connection moved after the last look before
  // its end is not seen. Errors as of TcpConnectionsOf.
  Result<int64_t> Sample(const std::vector<pid_t>& pids);

 private:
  std::unordered_map<uint64_t, int64_t> known_;  // by inode
  bool began_ = false;
  int64_t total_ = 0;
};

// Threads of a process that sleep in the same place.
struct ThreadWait {
  std::string where;  // the kernel's name of it, "futex_wait_queue"; "running", or "?" if it is not
                      // told
  int threads = 0;
};

struct ProcessTrace {
  pid_t pid = 0;
  std::string name;
  char state = '?';  // as in /proc/<pid>/stat
  double cpu_seconds = 0;
  int threads = 0;
  std::vector<ThreadWait> waits;  // most threads first; of the first kTracedThreads
};

inline constexpr int kTracedThreads = 256;

// In the order of `pids`; those that have ended are left out.
std::vector<ProcessTrace> TraceProcesses(const std::vector<pid_t>& pids);

}  // namespace shoal::host
