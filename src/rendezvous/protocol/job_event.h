// Events of a running job, as its coordinator publishes them to controllers, and the verdict.
//
// Made by lifecycle/coordinator_core.h, sent by messages.h, received through coordinator_client.h.
// States and ends are job/state.h's. Plain data, copyable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "job/execution/state.h"

namespace shoal::rendezvous {

// One task in a verdict.
struct TaskResult {
  std::string role;
  int index = 0;
  int attempts = 0;                 // how many were started
  std::optional<job::TaskEnd> end;  // of the last attempt; none if it never ran
};

// verdict.json. `state` is kSucceeded, kFailed or kCancelled, or kSuspended, which ends the
// coordinator but not the job.
struct Verdict {
  job::JobState state = job::JobState::kSucceeded;
  std::string reason;    // one sentence, for success too
  bool gathered = true;  // false: not all tasks came within limits.gather, so the job may be queued
                         // again
  std::vector<TaskResult> tasks;
};
// Whether every task of these roles has ended with exit code 0. Of a stopped job: whether they have
// saved.
bool EndedWell(const Verdict& verdict, const std::vector<std::string>& roles);
json::object VerdictToJson(const Verdict& verdict);
Result<Verdict> VerdictFromJson(const json::object& object);

// How a job whose verdict is kSuspended goes on.
enum class Continuation : uint8_t {
  kNone,            // the job has ended
  kOnResume,        // when it is resumed
  kNextAllocation,  // the engine starts it again by itself, in another allocation
};
Continuation ContinuationOf(const Verdict& verdict);
// The reason of a suspension that ends with the engine's next allocation. It is the mark of
// Continuation::kNextAllocation in journals and verdict.json.
inline constexpr const char* kContinuesInNextAllocation =
    "the time of its allocation is nearly over; it goes on in another one";

// One event. Which fields are set depends on the type.
struct JobEvent {
  enum class Type : uint8_t {
    kJob,         // job_state (kStarting, kRunning, kFinishing), text (why)
    kTask,        // role, index, attempt, task_state; with kEnded: end, last_line, text (why it is
                  // or is not started again) and will_restart: then kRunning of the next attempt
                  // follows, after kCreated and kJoined if its launcher was lost. kCreated with
                  // will_restart: nothing is heard of its launcher; the engine is to replace it
    kGeneration,  // generation, body = the cluster description (framework/cluster.h)
    kProgress,    // role, index, attempt, body = {"step":…,"total":…,"rate":…, …}
    kResult,      // role, index, attempt, body
    kProgram,     // role, index, attempt, body: a program's own {"event":…}
    kUsage,       // role, index, attempt, rss_bytes, cpu_seconds
    kScaled,      // role, body = {"replicas":…}: so many tasks its role is to have from now on
    kExcluded,    // role, body = {"host":…}, text: no program of it is started there any more
    kStalled,     // text, body = {"tasks": […]}: nothing moves, and what each task is doing
    kMoving,      // text: it moves again
    kNote,        // text: a sentence for people ("worker 3 has not been heard of for 5 s")
    kVerdict,     // verdict
  };
  Type type = Type::kJob;
  // Grows with each recorded event, with gaps; a controller resumes after the last one it has
  // stored. 0 for transient events (progress, usage, program, notes), of which the latest progress
  // and usage of each task is repeated to every new connection.
  int64_t seq = 0;
  std::string at;  // RFC 3339, coordinator's wall clock
  std::string role;
  int index = 0;
  int attempt = 0;
  int64_t generation = 0;
  job::TaskState task_state = job::TaskState::kCreated;
  job::JobState job_state = job::JobState::kStarting;
  std::optional<job::TaskEnd> end;
  std::string last_line;  // that the attempt printed, at most 200 bytes of valid UTF-8
  bool will_restart = false;
  int64_t rss_bytes = 0;
  double cpu_seconds = 0;
  json::object body;
  std::string text;
  Verdict verdict;
};

// A request of a controller that the coordinator has refused by a note.
enum class RequestRefusal : uint8_t { kNone, kScale, kSuspend };
// What `event` refuses; kScale only for this role.
RequestRefusal RefusalOf(const JobEvent& event, std::string_view role = {});
// Texts of such notes.
std::string ScaleRefusalText(std::string_view role, std::string_view why);
std::string SuspendRefusalText(std::string_view why);

std::string_view EventTypeName(JobEvent::Type type);
json::object EventToJson(const JobEvent& event);
Result<JobEvent> EventFromJson(const json::object& object);

}  // namespace shoal::rendezvous
