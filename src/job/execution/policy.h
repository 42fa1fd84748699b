// The rules that decide a job's fate, as pure functions: has it succeeded, is this death transient,
// shall the task be started again and when (design.md §6.5–6.7).
//
// Called by the coordinator, which alone counts and decides; simulated and property-tested without
// one. No state, no clock: times are handed in.
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

// What is known of one task, its restarts considered: kUnfinished also while it will be started
// again.
enum class Outcome : uint8_t { kUnfinished, kSucceeded, kFailed, kStopped };

struct TaskOutcome {
  std::string role;
  int index = 0;
  Outcome outcome = Outcome::kUnfinished;
  std::string reason;     // of kFailed, completes "worker 3 …": "exited with 3"
  bool ends_job = false;  // its failure was one more than the job's limits.restarts allow
};

struct Verdict {
  enum class Kind : uint8_t { kUndecided, kSucceeded, kFailed };
  Kind kind = Kind::kUndecided;
  std::string reason;  // one sentence; while undecided it says what is awaited
};

// Applies the job's success rule to the tasks that take part. The tasks that the rule does not wait
// for matter only by failing: one that failed for good (a parameter server that is not started
// again, under `first` any other worker) fails the job, unless the rule is already fulfilled. A
// stopped task of a role the rule names counts as not succeeded. An elastic role does without those
// that failed or were stopped while its `min` others go on or have ended well; not without the one
// that decides under `first`. When every task has ended the verdict is never undecided. The
// first decided verdict is the job's; the caller keeps it. O(tasks).
Verdict Judge(const Job& job, const std::vector<TaskOutcome>& tasks);

// ---- What a file says of ends and lines ---------------------------------------------------------

// What the `code` of an on_exit rule stands for.
struct ExitMatch {
  enum class What : uint8_t { kCodes, kSignal, kAnySignal, kOutOfMemory, kLost };
  What what = What::kCodes;
  int first = 0;  // kCodes: 1 … 255; kSignal: the signal
  int last = 0;
};
// "137", "128-255", "SIGKILL", "signal", "out-of-memory", "lost"; nothing for anything else.
std::optional<ExitMatch> ParseExitMatch(const std::string& code);
// An exit code of 128 + n and death by signal n are the same to it.
bool MatchesEnd(const ExitMatch& match, const TaskEnd& end);

// True if the line is the pattern, in which each '*' stands for any text, also none. Bytes, no
// case folding. O(line · parts of the pattern) at worst, without recursion.
bool LineMatches(std::string_view pattern, std::string_view line);

// ---- Restart ------------------------------------------------------------------------------------

enum class EndClass : uint8_t { kSuccess, kTransient, kPermanent, kCancelled };

// Signals, lost tasks, exit codes of 128 and above (a shell's way to say "signal") and the first
// `ooms_before == 0` out-of-memory are transient; exit 1–127 and a second out-of-memory are
// permanent.
EndClass ClassifyEnd(const TaskEnd& end, int ooms_before = 0);

// What was counted so far against one task, or against the whole scope (role, job).
struct RestartHistory {
  int restarts = 0;  // counted ones
  int ooms = 0;      // out-of-memory ends of this task before the one that is judged
  int of_job = 0;    // counted restarts of all tasks together
};

struct RestartDecision {
  bool restart = false;
  bool ignored = false;                      // the end counts as a good one
  RestartScope scope = RestartScope::kTask;  // what is started again
  bool counted = false;                      // add one to RestartHistory::restarts
  std::chrono::milliseconds delay{0};        // wait this long first
  bool exhausted = false;     // it would be restarted, but Limits::restarts are used up
  bool exclude_host = false;  // … on another host: this one is not to be used for the role any more
  std::string rule;           // which says so: "'on_exit: {code: 7}'"; else empty
  std::string reason;  // one sentence part after "worker 3 exited with 1": why (not) restarted
};

// Decides for an attempt that ended. A consequence of another task's death (see IsConsequence) is
// restarted whatever its exit code, unless `when` is never, and is not counted. exit 0 and
// cancelled ends are never restarted.
RestartDecision DecideRestart(const Restart& policy, const TaskEnd& end,
                              const RestartHistory& history, bool consequence);
// The same for a task of the role: its on_log rule of this number (-1: no line matched), else its
// first on_exit rule that matches, comes before `restart`. A rule's retry is not counted either
// if the end is a consequence, whose host is not to blame.
RestartDecision DecideEnd(const Role& role, const TaskEnd& end, const RestartHistory& history,
                          bool consequence, int log_rule);

// A decision under the whole job's limit: one that would be counted is refused once `of_job` has
// reached it.
RestartDecision LimitRestarts(const Limits& limits, const RestartHistory& history,
                              RestartDecision decision);

// backoff · 2^restarts, at most backoff_max; `restarts` counted ones before this.
std::chrono::milliseconds BackoffBefore(const Restart& policy, int restarts);

// A task's bad end at a time of any one monotonic clock.
struct TaskFailure {
  int generation = 0;
  std::string role;
  int index = 0;
  std::chrono::milliseconds at{0};
};

inline constexpr std::chrono::milliseconds kConsequenceWindow{30'000};

// True if `death` is to be blamed on `first`, the first death in its generation: another task's, of
// the same generation, at most 30 s before. An out-of-memory is nobody's consequence: the caller
// does not ask for one. The caller keeps `first` per generation.
bool IsConsequence(const std::optional<TaskFailure>& first, const TaskFailure& death);

}  // namespace shoal::job
