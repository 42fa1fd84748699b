// What the controller knows of a job: its state, its tasks, the events that made them so.
//
// Plain data, written by controller.cc, kept by store.h, shown by the command line. A record is
// nothing but its events applied in order (ApplyEvent), so that a store can always be rebuilt from
// its log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "job/execution/state.h"

namespace shoal::controller {

using job::JobState;

// Which process owns a job: its pid alone would be taken by another one some day, so its start
// time (clock ticks since boot), the boot and the PID namespace it belongs to stand beside it.
struct ProcessIdentity {
  int64_t pid = 0;
  int64_t start_ticks = 0;
  std::string boot_id;
  int64_t pid_namespace = 0;  // the namespace's inode; 0: recorded by a shoal that did not know it
  bool operator==(const ProcessIdentity&) const = default;
};

// One entry of a job's log. Types: the states' names ("submitted" for pending, "ended" for the
// last three), "task", "owner", "note", "resized" (`role`, `replicas`: of a job that waits),
// "excluded" (`role`, `host`, `reason`: no program of the role is started there any more),
// "stalled" (`reason`, and `tasks`: what each was doing) and "moving" (stalled no more).
struct Event {
  int64_t seq = 0;  // position in the job's log, from 1; the store sets it
  WallTime time{};
  std::string type;
  json::object body;
};

// The last that is known of one task.
struct TaskRecord {
  std::string role;
  int index = 0;
  int attempt = 0;
  job::TaskState state = job::TaskState::kCreated;
  std::optional<job::TaskEnd> end;  // of this attempt
  bool will_restart = false;
  std::string last_line;  // that this attempt printed; of one that failed
};

// A job as its events made it.
struct JobRecord {
  std::string id;
  std::string name;
  JobState state = JobState::kPending;
  std::string reason;     // of the end, the waiting or the stall; one sentence; may be empty
  std::string engine;     // "local"
  json::object job;       // as job::ToJson wrote it
  json::object result;    // what the tasks reported at the end ("words_per_second", "loss", …)
  ProcessIdentity owner;  // the controller; pid 0: none, of a job that has ended or is suspended
  WallTime submitted{};
  WallTime started{};  // first time running; epoch: not yet
  WallTime ended{};    // epoch: not yet
  // Why part of it cannot be read, one sentence; `job` or `result` is then empty. Empty: all of it
  // was read.
  std::string damage;
  int64_t order = 0;  // of submission within the store, growing
  int64_t last_seq = 0;
};

// Bodies of events. What is read back is checked field by field.
json::object ToJson(const ProcessIdentity& process);
Result<ProcessIdentity> ParseProcessIdentity(const json::object& object);
json::object ToJson(const TaskRecord& task);
Result<TaskRecord> ParseTask(const json::object& object);

// Makes `record` what it is after `event`. FailedPrecondition if the job had ended (no job changes
// its verdict; notes are still taken); InvalidArgument for a body that lacks its fields.
Status ApplyEvent(const Event& event, JobRecord* record);

// Makers of the events above; the store gives `seq`, the caller the time.
Event StateEvent(WallTime time, JobState state, std::string_view reason);
// `result`: what the tasks reported.
Event EndedEvent(WallTime time, JobState state, std::string_view reason,
                 const json::object& result);
Event TaskEvent(WallTime time, const TaskRecord& task);
Event NoteEvent(WallTime time, std::string_view text);
// `evidence`: the coordinator's word of what each task was doing; empty and no reason: it moves.
Event StalledEvent(WallTime time, std::string_view reason, const json::object& evidence);
Event MovingEvent(WallTime time);
Event ExcludedEvent(WallTime time, const std::string& role, const std::string& host,
                    std::string_view reason);
// An elastic role of a job that waits begins with so many tasks.
Event ResizedEvent(WallTime time, const std::string& role, int replicas);

}  // namespace shoal::controller
