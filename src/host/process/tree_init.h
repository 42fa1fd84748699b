// The init of a process tree: the small process between a launcher and its task's program.
//
// Runs in a child made by a bare clone of a program that may have many threads, so everything in
// tree_init.cc keeps to async-signal-safe calls: no allocation, no locks, no C++ library. Used by
// process_tree.cc and isolation.cc only.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace shoal::host {

// The step at which a start failed, for the launcher's message.
enum class StartStep : int32_t {
  kNone,
  kUserMap,
  kMountProc,
  kFork,
  kEnterGroup,
  kDescriptors,
  kDirectory,
  kExec,
};

// One packet on the control socket. Both sides run the same binary, so the struct is sent as it is.
struct InitMessage {
  enum Kind : int32_t {
    // from the tree
    kProgram,      // sent by a program's process itself: its credentials carry its pid; a = number
    kStarted,      // exec has happened, in all
    kStartFailed,  // a = StartStep, b = errno
    kEnded,  // a = wait status, b = of which process, cpu_us and max_rss_kib of the whole tree
    // to init
    kSignal,  // a = signal for the process group of each program
    kKill,    // kill the whole tree
  };
  int32_t kind = 0;
  int32_t a = 0;
  int32_t b = 0;
  int32_t c = 0;  // of kEnded: not 0 if a signal to end came from outside the launcher
  int64_t cpu_us = 0;
  int64_t max_rss_kib = 0;
};

// Descriptor `fd` becomes number `as` in the program.
struct PlannedFd {
  int fd;
  int as;
};

// The settings of one process of the tree.
struct PlannedProcess {
  char* const* envp;
  const PlannedFd* fds;  // 0, 1, 2 and what else is inherited
};

inline constexpr size_t kMostProcesses = 1024;

// Input of init, prepared before the clone. Owns nothing.
struct InitPlan {
  int control = -1;               // init's end of the control socket
  bool new_pids = false;          // init is the first process of a PID namespace
  const char* uid_map = nullptr;  // not null: in a new user namespace
  const char* gid_map = nullptr;
  // Of new namespaces, where the machine allows them; null: as it is.
  const char* shared_memory = nullptr;  // a directory to be seen as /dev/shm
  const char* last_pid = nullptr;       // the number before the first of the other processes
  // System V's shared memory names its creators by numbers of the reader's PID namespace: what
  // processes of this one have made and left can be told apart, and is removed with them.
  bool removes_shared_memory = false;
  bool die_with_thread = false;  // the thread that clones lives as long as its process

  const char* program = nullptr;
  char* const* argv = nullptr;
  const char* work_dir = nullptr;  // null: ours
  const PlannedProcess* processes = nullptr;
  size_t process_count = 1;            // at most kMostProcesses
  size_t fd_count = 0;                 // of each process
  int64_t grace_ms = 0;                // for the others of a process that failed
  const int* group_entries = nullptr;  // files to write "0" to
  size_t group_entry_count = 0;
  int unified_group = -1;  // directory of a v2 group, -1 for none
};

inline constexpr int kHighestInheritedFd = 255;

// Runs init. Called in the child; never returns.
[[noreturn]] void RunInit(const InitPlan& plan);

// clone3 without a stack of its own, like fork. 0 in the child, -1 and errno on failure. `pidfd`
// may be null, `group` -1. `exit_signal` 0: only waitpid with this pid and __WALL can reap it.
pid_t CloneProcess(uint64_t flags, int exit_signal, int* pidfd, int group);

// Flags of CloneProcess for the namespaces of a tree.
uint64_t NamespaceFlags(bool new_pids, bool new_user);

// Sets up the user mapping and /proc of new namespaces. Returns the step that failed, with errno.
StartStep EnterNamespaces(const InitPlan& plan);

}  // namespace shoal::host
