// Runs a task's program and contains all processes that it starts, so that none survives the
// program's end, the launcher's end, or a kill -9 of either.
//
//   launcher ──control socket── init ── the program ── its children, their orphans …
//
// `init` is a small process of Shoal, the first of a PID namespace where that is permitted
// (isolation.h). It starts the program, reaps orphans, and kills the rest of the tree when the
// program ends or the control socket closes because the launcher has ended. Used by the launcher
// (rendezvous).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "host/process/isolation.h"
#include "host/process/process_usage.h"
#include "job/spec/job.h"

namespace shoal::host {

// Descriptor `fd` of this process becomes number `as` (≥ 3) in the child.
struct InheritedFd {
  int fd = -1;
  int as = -1;
};

// An additional process of a tree: the same command with another environment and other outputs.
struct AdditionalProcess {
  std::vector<std::string> env;
  int stdout_fd = -1;
  int stderr_fd = -1;
};

// Owns none of its descriptors. The program has only standard input (/dev/null), the two outputs
// and `inherited` open, whatever flags other descriptors have.
struct ProcessSpec {
  std::string job_id;             // name of the control group's parent
  std::string name;               // unique within the job, "worker-0.1": name of the control group
  std::vector<std::string> argv;  // argv[0]: a path, or looked up in PATH of `env`
  std::vector<std::string> env;   // "NAME=value", exactly what the program gets
  std::string work_dir;           // empty: this process's
  int stdout_fd = -1;             // -1: /dev/null; may be the same as stderr_fd (one merged pipe)
  int stderr_fd = -1;
  std::vector<InheritedFd> inherited;  // in every process
  // Processes number 1, 2, … of the tree. The tree ends when all have ended or one fails; after a
  // failure the others get SIGTERM, and SIGKILL after `grace`.
  std::vector<AdditionalProcess> additional;
  std::chrono::milliseconds grace{0};
  job::Resources resources;
  int64_t max_processes = 0;  // processes and threads; 0: no limit
};

// How the program ended: the tree's first process, or of several the first that failed.
struct ProcessExit {
  int process = 0;     // number of the process that ended
  int exit_code = -1;  // valid if signal is 0
  int signal = 0;
  bool out_of_memory = false;     // the tree exceeded resources.memory_bytes and did not end well
  int64_t peak_memory_bytes = 0;  // of the tree where a control group measured it, else of its
                                  // largest process; 0 if unknown
  double cpu_seconds = 0;         // of the tree; 0 if unknown
  // The tree's init received SIGTERM or SIGINT. The launcher never sends them to init: an engine, a
  // resource manager or a user signals all processes of the task.
  bool signaled_externally = false;
  bool ok() const { return signal == 0 && exit_code == 0; }
};

// Thread-compatible; Signal and KillAll may be called from any thread. Start and end of a program
// that does nothing cost about 1–2 ms.
class ProcessTree {
 public:
  // Starts the program and returns once exec has happened (about 1 ms, blocking). Errors: NotFound,
  // PermissionDenied, InvalidArgument name the program or directory and what to do. A mode that the
  // machine refuses is an error too (PermissionDenied): probe first.
  static Result<std::unique_ptr<ProcessTree>> Start(const ProcessSpec& spec,
                                                    const Isolation& isolation);
  // Kills what is left, waits for it and removes the control group.
  ~ProcessTree();
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  // The (first) program's pid in this process's PID namespace.
  pid_t pid() const;
  // Readable once the program has ended and its tree is gone. Owned by this object. Wait and
  // TryWait then do not block.
  int exit_fd() const;

  // The end, or nothing while the program runs. Blocks for at most `timeout`. Later calls return
  // the same result.
  std::optional<ProcessExit> Wait(std::chrono::milliseconds timeout);
  std::optional<ProcessExit> TryWait() { return Wait(std::chrono::milliseconds(0)); }

  // Signals the process group of each program. FailedPrecondition if the program has ended.
  Status Signal(int signal);
  // Sends SIGKILL to the whole tree, including processes after setsid and double fork. Does not
  // wait; exit_fd becomes readable.
  void KillAll();

  // Current memory and processor time of the tree. If memory is only monitored (memory_enforced()
  // is false) and the limit is exceeded, kills the tree and reports its end as out of memory: call
  // it about once a second.
  Result<Usage> Sample();
  // All live processes of the tree, the program first. One pass over /proc.
  std::vector<pid_t> Pids() const;
  // True if the kernel holds the tree to resources.memory_bytes.
  bool memory_enforced() const;

 private:
  struct State;
  explicit ProcessTree(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace shoal::host
