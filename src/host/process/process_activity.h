// Measures whether processes make progress and what they wait for: bytes over their TCP
// connections, the kernel functions in which their threads sleep. Used by launchers for stall
// reports.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace shoal::host {

// An open TCP connection of a process; listeners and closed connections are not included.
struct TcpConnection {
  uint64_t inode = 0;
  std::string local;  // "127.0.0.1:4000"
  std::string peer;
  std::string state;   // "established", "syn-sent", "close-wait" …
  int64_t unread = 0;  // received bytes that the program has not read
  int64_t unsent = 0;  // written bytes that the peer has not acknowledged
  int64_t moved = 0;   // bytes received and acknowledged since the connection was opened
};

// The connections of these processes, unordered. Processes whose descriptors this user may not see
// contribute none. Unavailable if the kernel has no socket diagnostics. Costs one dump of all of
// the machine's connections and a readlink for each descriptor of the processes.
Result<std::vector<TcpConnection>> TcpConnectionsOf(const std::vector<pid_t>& pids);

// Counts the bytes that a changing set of processes transfers. Not thread-safe.
class NetworkMeter {
 public:
  // Bytes since the first call, which returns 0. Bytes between the last sample and the close of a
  // connection are not counted. Errors as of TcpConnectionsOf.
  Result<int64_t> Sample(const std::vector<pid_t>& pids);

 private:
  std::unordered_map<uint64_t, int64_t> known_;  // by inode
  bool began_ = false;
  int64_t total_ = 0;
};

// The threads of a process that sleep in the same kernel function.
struct ThreadWait {
  std::string where;  // name of the function, "futex_wait_queue"; "running"; "?" if unknown
  int threads = 0;
};

// State of a process and the wait functions of its threads.
struct ProcessTrace {
  pid_t pid = 0;
  std::string name;
  char state = '?';  // as in /proc/<pid>/stat
  double cpu_seconds = 0;
  int threads = 0;
  std::vector<ThreadWait> waits;  // most threads first; covers the first kTracedThreads threads
};

inline constexpr int kTracedThreads = 256;

// One trace for each process that still exists, in the order of `pids`.
std::vector<ProcessTrace> TraceProcesses(const std::vector<pid_t>& pids);

}  // namespace shoal::host
