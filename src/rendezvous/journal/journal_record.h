// One entry of the coordinator's journal: a decision, or something that it has learnt. The
// coordinator's state is the sum of its records: each is written before it takes effect, and a
// restarted coordinator applies them in order and goes on.
//
// Made by lifecycle/coordinator_core.h, stored by journal.h (docs/formats/journal.md), published as
// JobEvents. Plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "job/execution/state.h"
#include "job/spec/job.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::rendezvous {

// How hard a job is stopped; each mode contains the one before.
enum class StopMode : uint8_t {
  kNone,
  kDrain,  // SIGTERM to tasks that follow no role; followers come after them
  kStop,   // SIGTERM to all at once
  kKill,   // SIGKILL to all at once
};

struct JournalRecord {
  enum class Kind : uint8_t {
    kJob,               // state, text, stop; `decided` once the verdict is known; gathered
    kLauncherAssigned,  // task, incarnation, instance, node
    kLeased,            // task, host, ports: it has joined
    kLauncherLost,      // task, text: its launcher was lost; restart: by its silence alone
    kGeneration,  // generation, body = the cluster description; restart: the scope is together
    kStarted,     // task, attempt: its program was ordered to start
    kReady,       // task, attempt: it serves
    kDraining,    // task, attempt, text: … to end; restart: to be started again with others; due:
                  // of the kill
    kEnded,       // task, attempt, end, last_line, text, restart, counted, ignored, exhausted,
                  // port_conflict, consequence, due
    kRestart,     // task, attempt, text, scope, due, port_conflict: after its end all of the scope
                  // start again
    kResult,      // task, attempt, body: what the program reported as its result
    kScale,       // task: the first of its role, replicas, text: the role is to have so many
    kStalled,   // text, body = {"tasks": […]}: what each is doing; counted: all are started again
    kMoving,    // text: it is stalled no more
    kExcluded,  // task, node, text: why none of its role is started there any more
    kResumed,   // replicas: how often the job was resumed; what was suspended goes on
    kVerdict,   // verdict
  };
  Kind kind = Kind::kJob;
  int64_t seq = 0;                  // 1, 2, 3 …
  std::chrono::milliseconds at{0};  // since the job's start
  std::string wall;                 // the same as civil time, RFC 3339
  int task = -1;                    // number of the task: roles in the job's order, then index
  int attempt = 0;
  int incarnation = 0;
  std::string instance;
  std::string host;
  std::string node;  // the engine's name of the launcher's host
  std::vector<uint16_t> ports;
  int64_t generation = 0;
  json::object body;
  std::string text;
  job::JobState state = job::JobState::kStarting;
  std::optional<job::JobState> decided;
  bool gathered = true;
  StopMode stop = StopMode::kNone;
  std::optional<job::TaskEnd> end;
  std::string last_line;
  bool restart = false;        // there will be another attempt
  bool counted = false;        // and it counts against the limit
  bool ignored = false;        // the end counts as a good one
  bool exhausted = false;      // it would be started again, but for limits.restarts
  bool port_conflict = false;  // another process had a port of the task: not counted
  job::RestartScope scope = job::RestartScope::kTask;
  int replicas = 0;
  bool consequence = false;          // of another task's death
  std::chrono::milliseconds due{0};  // when the next attempt may start
  Verdict verdict;

  // True for records that must be on disk before anything is told of them (docs/design, "Finish"):
  // ends, results, their consequences and the verdict. The others only have to survive the
  // coordinator's own death.
  bool durable() const {
    return kind == Kind::kEnded || kind == Kind::kVerdict || kind == Kind::kResult ||
           kind == Kind::kStalled || kind == Kind::kExcluded;
  }
};

std::string JournalRecordToText(const JournalRecord& record);
// Accepts untrusted bytes; errors for malformed ones. The caller checks task numbers.
Result<JournalRecord> JournalRecordFromText(std::string_view text);

// The last record before the latest resumption of a suspended job; 0: it was never resumed.
int64_t LastSeqBeforeResume(const std::vector<JournalRecord>& records);

}  // namespace shoal::rendezvous
