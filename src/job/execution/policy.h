// The rules that decide how a job ends, as pure functions: whether it has succeeded, whether the
// end of a task is transient, and whether and when the task restarts (design.md §6.5–6.7).
//
// Called by the coordinator, which owns all counters. Without state and clock: callers pass times
// in, so simulations and property tests run the same code.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/execution/state.h"
#include "job/spec/job.h"

namespace shoal::job {

// ---- Success ------------------------------------------------------------------------------------

// State of one task across its restarts. kUnfinished includes a task that is about to restart.
enum class Outcome : uint8_t { kUnfinished, kSucceeded, kFailed, kStopped };

struct TaskOutcome {
  std::string role;
  int index = 0;
  Outcome outcome = Outcome::kUnfinished;
  std::string reason;     // of kFailed; continues "worker 3 …": "exited with 3"
  bool ends_job = false;  // its failure exceeded the job's limits.restarts
  // It was a parameter server with the only copies of its rows: an elastic role cannot go on
  // without it.
  bool irreplaceable = false;
};

struct Verdict {
  enum class Kind : uint8_t { kUndecided, kSucceeded, kFailed };
  Kind kind = Kind::kUndecided;
  std::string reason;  // one sentence; while undecided, the tasks that are awaited
};

// Applies the job's success rule.
//
// Tasks outside the rule's roles affect the verdict only by a final failure (a parameter server
// that does not restart; under `first`, any other worker): it fails the job unless the rule is
// already fulfilled. A stopped task of a role in the rule counts as not succeeded. In an elastic
// role, failed and stopped tasks are ignored as long as `min` others run or have succeeded, except
// irreplaceable ones and the deciding task under `first`. After all tasks have ended the verdict is
// decided. The first decided verdict is final; the caller stores it. O(tasks).
Verdict Judge(const Job& job, const std::vector<TaskOutcome>& tasks);

// ---- What a file says of ends and lines ---------------------------------------------------------

// A parsed `code` of an on_exit rule.
struct ExitMatch {
  enum class What : uint8_t { kCodes, kSignal, kAnySignal, kOutOfMemory, kLost };
  What what = What::kCodes;
  int first = 0;  // kCodes: first code, 1 … 255; kSignal: the signal
  int last = 0;
};
// Parses "137", "128-255", "SIGKILL", "signal", "out-of-memory" or "lost"; nothing for other texts.
std::optional<ExitMatch> ParseExitMatch(const std::string& code);
// Treats an exit code of 128 + n like death by signal n.
bool MatchesEnd(const ExitMatch& match, const TaskEnd& end);

// Matches a line against a pattern in which each '*' stands for any text, possibly empty. Compares
// bytes, case-sensitively. O(line · parts of the pattern), without recursion.
bool LineMatches(std::string_view pattern, std::string_view line);

// ---- Restart ------------------------------------------------------------------------------------

enum class EndClass : uint8_t { kSuccess, kTransient, kPermanent, kCancelled };

// Transient: signals, lost tasks, exit codes from 128 (a shell's encoding of signals) and the first
// out-of-memory (`ooms_before == 0`). Permanent: exit codes 1–127 and a second out-of-memory.
EndClass ClassifyEnd(const TaskEnd& end, int ooms_before = 0);

// Restart counters of one task, or of a whole scope (role, job).
struct RestartHistory {
  int restarts = 0;  // counted restarts
  int ooms = 0;      // earlier out-of-memory ends of this task
  int of_job = 0;    // counted restarts of all tasks of the job
};

struct RestartDecision {
  bool restart = false;
  bool ignored = false;                      // the end counts as success
  RestartScope scope = RestartScope::kTask;  // the tasks that restart
  bool counted = false;                      // the caller increments RestartHistory::restarts
  std::chrono::milliseconds delay{0};        // delay before the restart
  bool exhausted = false;                    // no restart, because Limits::restarts is used up
  bool exclude_host = false;  // restart on another host and exclude this one for the role
  std::string rule;           // the deciding rule, "'on_exit: {code: 7}'", or empty
  std::string reason;         // clause after "worker 3 exited with 1": why it restarts or not
};

// Decides about an attempt that ended. A consequence of another task's failure (see IsConsequence)
// restarts for any exit code unless `when` is never, and is not counted. Exit code 0 and cancelled
// attempts never restart.
RestartDecision DecideRestart(const Restart& policy, const TaskEnd& end,
                              const RestartHistory& history, bool consequence);
// The same with the role's rules. The on_log rule number `log_rule` (-1: no line matched), else the
// first matching on_exit rule, takes precedence over `restart`. A rule's retry is not counted for a
// consequence, and its host is not excluded.
RestartDecision DecideEnd(const Role& role, const TaskEnd& end, const RestartHistory& history,
                          bool consequence, int log_rule);

// Applies the limit of the whole job: refuses a counted restart once `of_job` has reached it.
RestartDecision LimitRestarts(const Limits& limits, const RestartHistory& history,
                              RestartDecision decision);

// backoff · 2^restarts, at most backoff_max. `restarts`: counted restarts before this one.
std::chrono::milliseconds BackoffBefore(const Restart& policy, int restarts);

// A failed attempt and its time on any monotonic clock.
struct TaskFailure {
  int generation = 0;
  std::string role;
  int index = 0;
  std::chrono::milliseconds at{0};
};

inline constexpr std::chrono::milliseconds kConsequenceWindow{30'000};

// True if `death` is attributed to `first`, the first failure of its generation: a failure of
// another task in the same generation at most 30 s earlier. The caller keeps `first` per generation
// and does not ask about out-of-memory ends, which are never consequences.
bool IsConsequence(const std::optional<TaskFailure>& first, const TaskFailure& death);

}  // namespace shoal::job
