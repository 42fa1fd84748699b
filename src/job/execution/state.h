// The states that a job and a task go through (design.md §5), their names in records and messages,
// and which may follow which.
//
// Used by the controller (jobs), the coordinator (tasks) and every command that prints them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace shoal::job {

// pending → admitted → starting → running → finishing → succeeded|failed|cancelled. What could not
// gather goes back to pending; what has not begun to finish may be suspended, and goes on by
// pending. Any state that is not final may turn into failed or cancelled (the engine may lose
// everything at once); succeeded comes only after finishing.
enum class JobState : uint8_t {
  kPending,
  kAdmitted,
  kStarting,
  kRunning,
  kSuspended,
  kFinishing,
  kSucceeded,
  kFailed,
  kCancelled,
};

// created → joined → running → draining → ended. A task ends from any state. A new attempt begins
// at joined if its launcher is still there, else at created.
enum class TaskState : uint8_t { kCreated, kJoined, kRunning, kDraining, kEnded };

// "pending", "admitted", …; as stored, sent and printed.
std::string_view NameOf(JobState state);
std::string_view NameOf(TaskState state);
std::optional<JobState> ParseJobState(std::string_view name);
std::optional<TaskState> ParseTaskState(std::string_view name);

bool IsFinal(JobState state);
// False for from == to.
bool MayFollow(JobState from, JobState to);
bool MayFollow(TaskState from, TaskState to);

// How one attempt of a task ended.
enum class EndKind : uint8_t {
  kExit,         // exit_code
  kSignal,       // signal
  kOutOfMemory,  // went over its own memory limit
  kLost,         // its launcher or machine vanished; what became of the program is not known
  kCancelled,    // we stopped it on purpose (drain of a follower, stop, a restart of its scope),
                 // whatever code or signal it then ended with
};

struct TaskEnd {
  EndKind kind = EndKind::kExit;
  int exit_code = 0;   // kExit, 0…255
  int signal = 0;      // kSignal
  std::string detail;  // for people, may be empty: "exceeded its 512 MiB", "no heartbeat for 30 s"
  int process = -1;    // whose end it was, of a task of several processes; -1: of a single one

  bool ok() const { return kind == EndKind::kExit && exit_code == 0; }
  bool operator==(const TaskEnd&) const = default;
};

TaskEnd Exited(int code);
TaskEnd Signaled(int signal);
TaskEnd OutOfMemory(std::string detail);
TaskEnd Lost(std::string detail);
TaskEnd CancelledEnd(std::string detail);

// Completes "worker 3 …": "exited with 3", "was killed by signal 9 (SIGKILL)", or the detail.
std::string Describe(const TaskEnd& end);

// {"kind":"exit","exit_code":3} …; exact round trip. FromJson checks every field.
json::object ToJson(const TaskEnd& end);
Result<TaskEnd> TaskEndFromJson(const json::object& object);

}  // namespace shoal::job
