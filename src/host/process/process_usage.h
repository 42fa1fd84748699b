// What processes use and what the machine has. Read by launchers (heartbeat), the local engine
// (capacity) and `shoal doctor`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::host {

struct Usage {
  int64_t memory_bytes = 0;   // resident; pages shared between processes count in each
  int64_t private_bytes = 0;  // resident without file mappings and shared memory
  double cpu_seconds = 0;     // user and system, ended and waited-for children included
  int processes = 0;
};

// One line of /proc/<pid>/stat, as far as we need it.
struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';
  uint64_t start_ticks = 0;  // since boot: with the pid, a name that is never used again
  double cpu_seconds = 0;
  int exit_status = 0;  // of a zombie of our user, as wait(2) gives it
};

// NotFound if there is no such process.
Result<ProcessStat> ReadProcessStat(pid_t pid);
// All processes that we can see.
std::vector<ProcessStat> ListProcesses();
// `root`'s descendants, without itself, parents before children. Zombies are left out.
std::vector<pid_t> Descendants(pid_t root);
// Sum over the processes; those that have ended meanwhile are left out.
Usage UsageOf(const std::vector<pid_t>& pids);
// True if the process exists, is not a zombie, and started at `start_ticks` (0: do not care).
bool IsAlive(pid_t pid, uint64_t start_ticks = 0);
// The value of a variable in a process's environment as it was at exec; NotFound if unset.
Result<std::string> ReadProcessVariable(pid_t pid, const std::string& name);

// All processes but ourselves and our ancestors that had this variable with this value at exec:
// what a job left behind, found without any record. Costs about 15 us a process of the machine.
std::vector<pid_t> ProcessesWithVariable(const std::string& name, const std::string& value);
// SIGKILL through a pidfd, after a second look whether the pid still is that process. Waits for
// nothing. False if it is gone or may not be killed.
bool KillProcess(pid_t pid, uint64_t start_ticks);

struct MachineFacts {
  double cores = 0;             // that we may run on: affinity, and a quota on our group
  int64_t memory_bytes = 0;     // of the machine, or of our group's limit where that is less
  int64_t available_bytes = 0;  // MemAvailable
  int64_t huge_page_bytes = 0;  // size of the default huge page
  int64_t huge_pages_free = 0;
  std::string transparent_huge_pages;  // "always", "madvise", "never"; empty if unknown
  std::string processor;               // model name
  std::string simd;                    // widest vectors: "AVX-512", "AVX2", "SSE4.2", "NEON", ""
};

MachineFacts ReadMachineFacts();

}  // namespace shoal::host
