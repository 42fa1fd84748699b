// A task's program and everything it starts, held together so that nothing of it survives its end,
// its launcher's end, or a kill -9 of either.
//
//   launcher ──control socket── init ── the program ── its children, their orphans …
//
// `init` is a small process of ours, the first of a PID namespace where that is allowed
// (isolation.h). It starts the program, reaps orphans, and when the program ends or the control
// socket closes (the launcher is dead), kills all the rest. Called by the launcher (rendezvous).
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

// The child finds our descriptor `fd` under the number `as` (≥ 3).
struct InheritedFd {
  int fd = -1;
  int as = -1;
};

// One more process of a tree, beside the first: the same command.
struct AdditionalProcess {
  std::vector<std::string> env;
  int stdout_fd = -1;
  int stderr_fd = -1;
};

// Nothing here is owned, and nothing but stdin (/dev/null), the two outputs and `inherited` is
// open in the program, whatever flags other descriptors have.
struct ProcessSpec {
  std::string job_id;             // name of the control group's parent
  std::string name;               // unique within the job, "worker-0.1": name of the control group
  std::vector<std::string> argv;  // argv[0]: a path, or looked up in PATH of `env`
  std::vector<std::string> env;   // "NAME=value", exactly what the program gets
  std::string work_dir;           // empty: ours
  int stdout_fd = -1;             // -1: /dev/null; may be the same as stderr_fd (one merged pipe)
  int stderr_fd = -1;
  std::vector<InheritedFd> inherited;  // of every process
  // The tree's processes number 1, 2, …; the tree ends with the first that fails, or when all have
  // ended. The others of one that failed get SIGTERM, and SIGKILL after `grace`.
  std::vector<AdditionalProcess> additional;
  std::chrono::milliseconds grace{0};
  job::Resources resources;
  int64_t max_processes = 0;  // processes and threads; 0: no limit
};

// How the program ended: the tree's first process, or of several the first that failed.
struct ProcessExit {
  int process = 0;     // whose end it is
  int exit_code = -1;  // valid if signal is 0
  int signal = 0;
  bool out_of_memory = false;     // the tree exceeded resources.memory_bytes and did not end well
  int64_t peak_memory_bytes = 0;  // of the tree where a control group measured it, else of its
                                  // largest process; 0 if unknown
  double cpu_seconds = 0;         // of the tree; 0 if unknown
  // SIGTERM or SIGINT came to the tree's init, which the launcher never sends there: an engine, a
  // resource manager or a person signals all processes of the task.
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

  // The (first) program's pid as we see it (inside a PID namespace it has another).
  pid_t pid() const;
  // Readable once the program has ended and its tree is gone; owned by this object. Wait or TryWait
  // then do not block.
  int exit_fd() const;

  // The end, or nothing while the program runs. Blocks at most `timeout`; the second call gives the
  // same answer.
  std::optional<ProcessExit> Wait(std::chrono::milliseconds timeout);
  std::optional<ProcessExit> TryWait() { return Wait(std::chrono::milliseconds(0)); }

  // To the process group of each program (each leads its own). FailedPrecondition if it has ended.
  Status Signal(int signal);
  // SIGKILL for the whole tree, setsid and double fork or not. Does not wait: exit_fd tells.
  void KillAll();

  // Memory and processor time of the tree now. Where memory is only watched
  // (memory_enforced() false) and the limit is exceeded, kills the tree and reports its end as out
  // of memory: call it about once a second.
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
