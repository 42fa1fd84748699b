// Records of jobs, tasks and events.
//
// Plain data, written by the controller, stored by store.h, shown by the commands. A job's record
// is the result of applying its events in order (ApplyEvent), so a store can be rebuilt from its
// log.
#pragma once

#include <cstdint>
#include <map>
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

// The role under which an engine reports a job's coordinator.
inline constexpr const char* kCoordinatorRole = "coordinator";

// Words that a submission is marked with, for filters ("project" → "ads").
using JobLabels = std::map<std::string, std::string>;

// Identity of a process that owns a job. Since pids are reused, it includes the start time (clock
// ticks since boot), the boot id and the PID namespace.
struct ProcessIdentity {
  int64_t pid = 0;
  int64_t start_ticks = 0;
  std::string boot_id;
  int64_t pid_namespace = 0;  // inode of the namespace; 0: recorded by an old version without it
  bool operator==(const ProcessIdentity&) const = default;
};

// An entry of a job's log. Types: the names of states ("submitted" for pending, "ended" for the
// final ones), "task", "owner", "note", "resized" (`role`, `replicas`: of a queued job), "excluded"
// (`role`, `host`, `reason`: no more programs of the role start on the host), "stalled" (`reason`,
// and `tasks` with the activity of each), "moving" (end of the stall) and "result" (`result`: all
// that tasks have reported so far). An event that stands for an event of the coordinator has that
// one's number in kCoordinatorSeq.
struct Event {
  int64_t seq = 0;  // position in the job's log, from 1; set by the store
  WallTime time{};
  std::string type;
  json::object body;
};

// Field of an event's body. A controller that takes a job over continues after the greatest one.
inline constexpr const char* kCoordinatorSeq = "coordinator_seq";

// Latest known state of a task.
struct TaskRecord {
  std::string role;
  int index = 0;
  int attempt = 0;
  job::TaskState state = job::TaskState::kCreated;
  std::optional<job::TaskEnd> end;  // end of this attempt
  bool will_restart = false;
  std::string last_line;  // last output line of a failed attempt
};

// State of a job after its events.
struct JobRecord {
  std::string id;
  std::string name;
  JobState state = JobState::kPending;
  std::string reason;     // reason of the end, the wait or the stall; one sentence or empty
  std::string engine;     // "local"
  json::object job;       // written by job::ToJson
  json::object result;    // results reported by the tasks ("words_per_second", "loss", …)
  ProcessIdentity owner;  // the controller; pid 0: none, for an ended or suspended job
  WallTime submitted{};
  WallTime started{};  // first time in state running; epoch: not yet
  WallTime ended{};    // epoch: not yet
  // Sentence about unreadable parts, in which case `job` or `result` is empty; empty: the record
  // was read completely.
  std::string damage;
  std::string team;  // empty without a server, as is the next
  std::string user;
  JobLabels labels;
  int64_t lease_epoch = 0;  // of the lease under which it was last written; 0: none (lease.h)
  int64_t order = 0;        // submission order within the store, ascending
  int64_t last_seq = 0;
};

// Encoding of event bodies. The parsers check every field.
json::object ToJson(const ProcessIdentity& process);
Result<ProcessIdentity> ParseProcessIdentity(const json::object& object);
json::object ToJson(const TaskRecord& task);
Result<TaskRecord> ParseTask(const json::object& object);

// Applies `event` to `record`. FailedPrecondition if the job had ended, since a verdict is final
// (notes are still accepted); InvalidArgument for a body with missing fields.
Status ApplyEvent(const Event& event, JobRecord* record);

// Constructors of events. The caller passes the time; the store sets `seq`.
Event StateEvent(WallTime time, JobState state, std::string_view reason);
// `result`: results reported by the tasks.
Event EndedEvent(WallTime time, JobState state, std::string_view reason,
                 const json::object& result);
Event TaskEvent(WallTime time, const TaskRecord& task);
Event NoteEvent(WallTime time, std::string_view text);
// `evidence`: the coordinator's report of each task's activity.
Event StalledEvent(WallTime time, std::string_view reason, const json::object& evidence);
Event MovingEvent(WallTime time);
// A note that an elastic role of a running job is to have this number of tasks.
Event ScaledNoteEvent(WallTime time, std::string_view text, const std::string& role,
                      int64_t replicas);
Event ResultEvent(WallTime time, const json::object& result);
Event ExcludedEvent(WallTime time, const std::string& role, const std::string& host,
                    std::string_view reason);
// A new number of tasks for an elastic role of a queued job.
Event ResizedEvent(WallTime time, const std::string& role, int replicas);

}  // namespace shoal::controller
