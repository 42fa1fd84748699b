// Resource usage of processes and resources of the machine. Used by launchers (heartbeat), the
// local engine (capacity) and `shoal doctor`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::host {

// Sum of the resource usage of several processes.
struct Usage {
  int64_t memory_bytes = 0;   // resident; pages shared between processes count in each
  int64_t private_bytes = 0;  // resident without file mappings and shared memory
  double cpu_seconds = 0;     // user and system, ended and waited-for children included
  int processes = 0;
};

// The used fields of /proc/<pid>/stat.
struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';
  uint64_t start_ticks = 0;  // since boot; pid and start_ticks identify a process uniquely
  double cpu_seconds = 0;
  int exit_status = 0;  // of a zombie of this user, as wait(2) returns it
};

// NotFound if there is no such process.
Result<ProcessStat> ReadProcessStat(pid_t pid);
// The user as whom a process runs: its real, effective and saved user. PermissionDenied if these
// differ, NotFound if there is no such process.
Result<uid_t> UserOfProcess(pid_t pid);
// All visible processes.
std::vector<ProcessStat> ListProcesses();
// `root`'s descendants, without itself, parents before children. Zombies are left out. Reads only
// the tree's own entries in /proc (proc(5), "children"), so the cost does not grow with the
// machine's other processes; a process that is started or adopted meanwhile may be missing.
std::vector<pid_t> Descendants(pid_t root);
// Sum over the processes that still exist.
Usage UsageOf(const std::vector<pid_t>& pids);
// True if the process exists, is not a zombie, and started at `start_ticks` (0: any time).
bool IsAlive(pid_t pid, uint64_t start_ticks = 0);
// The value of a variable in a process's environment as it was at exec; NotFound if unset.
Result<std::string> ReadProcessVariable(pid_t pid, const std::string& name);

// All processes that had this variable with this value at exec, except for this process and its
// ancestors. Finds a job's processes without records. Costs about 15 us per process of the machine.
std::vector<pid_t> ProcessesWithVariable(const std::string& name, const std::string& value);
// Sends SIGKILL through a pidfd after checking that the pid still is that process. Does not wait.
// False if the process is gone or may not be killed.
bool KillProcess(pid_t pid, uint64_t start_ticks);

// Resources of this machine as this process may use them.
struct MachineFacts {
  double cores = 0;             // usable: affinity and the control group's quota
  int64_t memory_bytes = 0;     // of the machine, or the control group's limit if lower
  int64_t available_bytes = 0;  // MemAvailable
  int64_t huge_page_bytes = 0;  // size of the default huge page
  int64_t huge_pages_free = 0;
  std::string transparent_huge_pages;  // "always", "madvise", "never"; empty if unknown
  std::string processor;               // model name
  std::string simd;                    // widest vectors: "AVX-512", "AVX2", "SSE4.2", "NEON", ""
};

MachineFacts ReadMachineFacts();

}  // namespace shoal::host
