// States of jobs and tasks (design.md §5), their names in records and messages, and the legal
// transitions.
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

// pending → admitted → starting → running → finishing → succeeded|failed|cancelled. A job that
// could not gather its tasks returns to pending. A job may be suspended until it is finishing, and
// continues at pending. Every state that is not final may become failed or cancelled, since the
// engine may lose all tasks at once; succeeded follows only finishing.
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

// created → joined → running → draining → ended. A task may end in any state. A new attempt begins
// at joined if its launcher still exists, else at created.
enum class TaskState : uint8_t { kCreated, kJoined, kRunning, kDraining, kEnded };

// "pending", "admitted", …, as stored, sent and printed.
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
  kOutOfMemory,  // exceeded its memory limit
  kLost,         // its launcher or machine is gone; the program's fate is unknown
  kCancelled,    // stopped by Shoal (end of a followed role, stop, restart of its scope), with any
                 // code or signal
};

struct TaskEnd {
  EndKind kind = EndKind::kExit;
  int exit_code = 0;   // kExit, 0…255
  int signal = 0;      // kSignal
  std::string detail;  // for people, may be empty: "exceeded its 512 MiB", "no heartbeat for 30 s"
  int process =
      -1;  // index of the process that ended, of a task with several processes; -1: single process

  bool ok() const { return kind == EndKind::kExit && exit_code == 0; }
  bool operator==(const TaskEnd&) const = default;
};

TaskEnd Exited(int code);
TaskEnd Signaled(int signal);
TaskEnd OutOfMemory(std::string detail);
TaskEnd Lost(std::string detail);
TaskEnd CancelledEnd(std::string detail);

// Continues "worker 3 …": "exited with 3", "was killed by signal 9 (SIGKILL)", or the detail.
std::string Describe(const TaskEnd& end);

// {"kind":"exit","exit_code":3} …, with exact round trip. TaskEndFromJson checks every field.
json::object ToJson(const TaskEnd& end);
Result<TaskEnd> TaskEndFromJson(const json::object& object);

}  // namespace shoal::job
