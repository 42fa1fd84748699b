// What happens in a running job, as its coordinator tells it: the stream of events that a
// controller follows, and the verdict.
//
// Made by coordinator_core, carried by protocol.h, read through client.h. States and ends are
// job/execution/state.h's. Plain data, copyable.
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

// verdict.json. `state` is kSucceeded, kFailed or kCancelled; or kSuspended, which is no end of the
// job, but one of its coordinator.
struct Verdict {
  job::JobState state = job::JobState::kSucceeded;
  std::string reason;    // one true sentence, for success too
  bool gathered = true;  // false: not all tasks came within limits.gather, so the job may be queued
                         // again
  std::vector<TaskResult> tasks;
};
// Every task of these roles has ended with exit code 0: of a job that was stopped, it has saved.
bool EndedWell(const Verdict& verdict, const std::vector<std::string>& roles);
json::object VerdictToJson(const Verdict& verdict);
Result<Verdict> VerdictFromJson(const json::object& object);

// Begins the note that answers a CoordinatorClient::Scale that is refused; then the role, ": " and
// why.
inline constexpr const char* kNotScaled = "not scaled: ";

// Likewise of a CoordinatorClient::Suspend.
// The reason of a suspension after which the engine itself starts the job again.
inline constexpr const char* kContinuesInNextAllocation =
    "the time of its allocation is nearly over; it goes on in another one";
inline constexpr const char* kNotSuspended = "not suspended: ";

// One thing that happened. Which fields mean something depends on the type.
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
  // Grows with each event that is in the journal (with gaps), so a controller resumes behind the
  // last it has stored; 0 for what is told once and not kept (progress, usage, program, notes; the
  // latest progress and usage of each task is told again to who connects).
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
std::string_view EventTypeName(JobEvent::Type type);
json::object EventToJson(const JobEvent& event);
Result<JobEvent> EventFromJson(const json::object& object);

}  // namespace shoal::rendezvous
