#include "job/execution/policy.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <charconv>

#include "base/clock.h"

namespace shoal::job {
namespace {

// Outcomes of the tasks in the rule's roles, added up.
struct Tally {
  int going = 0;
  int succeeded = 0;
  int bad = 0;  // failed or stopped
  const TaskOutcome* first_bad = nullptr;
  const TaskOutcome* first_good = nullptr;

  int total() const { return going + succeeded + bad; }
};

std::string Plural(int n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string Name(const TaskOutcome& task) { return task.role + " " + std::to_string(task.index); }

std::string DescribeFailure(const TaskOutcome& task) {
  if (!task.reason.empty()) return Name(task) + " " + task.reason;
  return Name(task) + (task.outcome == Outcome::kStopped ? " was stopped" : " failed");
}

bool IsIn(const std::vector<std::string>& roles, const std::string& role) {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

void Count(const TaskOutcome& task, Tally* tally) {
  switch (task.outcome) {
    case Outcome::kUnfinished:
      ++tally->going;
      return;
    case Outcome::kSucceeded:
      ++tally->succeeded;
      if (tally->first_good == nullptr) tally->first_good = &task;
      return;
    case Outcome::kFailed:
    case Outcome::kStopped:
      ++tally->bad;
      // A failure explains more than a stopped task does.
      if (tally->first_bad == nullptr ||
          (tally->first_bad->outcome == Outcome::kStopped && task.outcome == Outcome::kFailed)) {
        tally->first_bad = &task;
      }
      return;
  }
}

Verdict Make(Verdict::Kind kind, std::string reason) { return {kind, std::move(reason)}; }

std::string List(const std::vector<std::string>& roles) {
  std::string text;
  for (size_t i = 0; i < roles.size(); ++i) {
    if (i > 0) text += i + 1 == roles.size() ? " and " : ", ";
    text += roles[i];
  }
  return text;
}

Verdict NoTasksVerdict(const Success& rule) {
  return Make(Verdict::Kind::kFailed,
              "no task of " + List(rule.roles) + " took part, so the job cannot succeed");
}

Verdict JudgeAll(const Success& rule, const Tally& tally) {
  if (tally.bad > 0) {
    return Make(Verdict::Kind::kFailed, DescribeFailure(*tally.first_bad) + ", and every task of " +
                                            List(rule.roles) + " must end well");
  }
  if (tally.going > 0) {
    return Make(Verdict::Kind::kUndecided, "waiting for " + Plural(tally.going, "task") + " of " +
                                               List(rule.roles) + " to end");
  }
  if (tally.total() == 1) {
    return Make(Verdict::Kind::kSucceeded, Name(*tally.first_good) + " ended well");
  }
  return Make(Verdict::Kind::kSucceeded,
              "all " + Plural(tally.total(), "task") + " of " + List(rule.roles) + " ended well");
}

Verdict JudgeCount(const std::string& whose, int needed, const Tally& tally) {
  if (tally.succeeded >= needed) {
    return Make(Verdict::Kind::kSucceeded,
                std::to_string(tally.succeeded) + " of " + Plural(tally.total(), "task") + " of " +
                    whose + " ended well, and " + std::to_string(needed) + " had to");
  }
  if (tally.succeeded + tally.going < needed) {
    return Make(
        Verdict::Kind::kFailed,
        "only " + std::to_string(tally.succeeded + tally.going) + " of " +
            Plural(tally.total(), "task") + " of " + whose + " could still end well, and " +
            std::to_string(needed) + " had to: " +
            (tally.first_bad != nullptr ? DescribeFailure(*tally.first_bad) : "there are no more"));
  }
  return Make(Verdict::Kind::kUndecided, "waiting for " +
                                             Plural(needed - tally.succeeded, "more task") +
                                             " of " + whose + " to end well");
}

Verdict JudgeFirst(const std::string& role, const TaskOutcome* task) {
  const std::string name = role + " 0";
  if (task == nullptr) {
    return Make(Verdict::Kind::kFailed, name + " took no part, and its end decides the job");
  }
  switch (task->outcome) {
    case Outcome::kUnfinished:
      return Make(Verdict::Kind::kUndecided, "waiting for " + name + " to end");
    case Outcome::kSucceeded:
      return Make(Verdict::Kind::kSucceeded, name + " ended well, and its end decides the job");
    case Outcome::kFailed:
    case Outcome::kStopped:
      break;
  }
  return Make(Verdict::Kind::kFailed, DescribeFailure(*task) + ", and its end decides the job");
}

Verdict JudgeRule(const Success& rule, const std::vector<TaskOutcome>& tasks) {
  Tally tally;
  const TaskOutcome* leader = nullptr;
  for (const TaskOutcome& task : tasks) {
    if (!IsIn(rule.roles, task.role)) continue;
    Count(task, &tally);
    if (task.index == 0 && task.role == rule.roles.front()) leader = &task;
  }
  if (rule.rule == SuccessRule::kFirst && !rule.roles.empty()) {
    return JudgeFirst(rule.roles.front(), leader);
  }
  if (tally.total() == 0) return NoTasksVerdict(rule);
  if (rule.rule == SuccessRule::kAll) return JudgeAll(rule, tally);
  const int needed = rule.rule == SuccessRule::kAny ? 1 : rule.count;
  return JudgeCount(List(rule.roles), needed, tally);
}

bool IsBad(const TaskOutcome& task) {
  return task.outcome == Outcome::kFailed || task.outcome == Outcome::kStopped;
}

// The outcomes without the failed and stopped tasks that an elastic role tolerates.
std::vector<TaskOutcome> WithoutMissing(const Job& job, std::vector<TaskOutcome> tasks) {
  const Success& rule = job.success;
  for (const Role& role : job.roles) {
    if (!role.elastic()) continue;
    const auto there = std::count_if(tasks.begin(), tasks.end(), [&](const TaskOutcome& task) {
      return task.role == role.name && !IsBad(task);
    });
    if (there < role.least()) continue;
    const bool led = rule.rule == SuccessRule::kFirst && IsIn(rule.roles, role.name);
    std::erase_if(tasks, [&](const TaskOutcome& task) {
      const bool leads = led && task.index == 0;
      return task.role == role.name && IsBad(task) && !task.ends_job && !task.irreplaceable &&
             !leads;
    });
  }
  return tasks;
}

}  // namespace

// Final failures are checked after the rule, since a fulfilled rule takes precedence.
Verdict Judge(const Job& job, const std::vector<TaskOutcome>& all) {
  const std::vector<TaskOutcome> tasks = WithoutMissing(job, all);
  Verdict verdict = JudgeRule(job.success, tasks);
  if (verdict.kind != Verdict::Kind::kUndecided) return verdict;
  const bool first = job.success.rule == SuccessRule::kFirst;
  for (const TaskOutcome& task : tasks) {
    if (task.outcome != Outcome::kFailed) continue;
    if (task.ends_job) {
      return Make(Verdict::Kind::kFailed,
                  DescribeFailure(task) + ", and the job has no restart left ('limits: restarts')");
    }
    if (first || !IsIn(job.success.roles, task.role)) {
      return Make(Verdict::Kind::kFailed, DescribeFailure(task) + " and is not started again, so " +
                                              List(job.success.roles) + (first ? " 0" : "") +
                                              " cannot finish");
    }
  }
  return verdict;
}

EndClass ClassifyEnd(const TaskEnd& end, int ooms_before) {
  switch (end.kind) {
    case EndKind::kExit:
      if (end.exit_code == 0) return EndClass::kSuccess;
      return end.exit_code >= 128 ? EndClass::kTransient : EndClass::kPermanent;
    case EndKind::kSignal:
    case EndKind::kLost:
      return EndClass::kTransient;
    case EndKind::kOutOfMemory:
      return ooms_before == 0 ? EndClass::kTransient : EndClass::kPermanent;
    case EndKind::kCancelled:
      return EndClass::kCancelled;
  }
  return EndClass::kPermanent;
}

namespace {

std::optional<int> Number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The scope of `policy.limit`, for messages.
std::string Subject(const Restart& policy) {
  switch (policy.scope) {
    case RestartScope::kTask:
      return "it";
    case RestartScope::kRole:
      return "its role";
    case RestartScope::kJob:
      return "the job";
  }
  return "it";
}

std::string LimitReached(const Restart& policy, const RestartHistory& history) {
  if (policy.limit == 0) return "not restarted, as the limit of restarts is 0";
  return "not restarted, as " + Subject(policy) + " was restarted " +
         Plural(history.restarts, "time") + " already and the limit is " +
         std::to_string(policy.limit);
}

// The decision of an on_exit or on_log rule. Its retry obeys the limit and backoff of `policy`.
RestartDecision DecideByRule(const Restart& policy, EndAction action, const RestartHistory& history,
                             bool consequence, const std::string& rule) {
  RestartDecision decision;
  decision.scope = policy.scope;
  switch (action) {
    case EndAction::kIgnore:
      decision.ignored = true;
      decision.reason = "treated as success, as " + rule + " says";
      return decision;
    case EndAction::kFail:
      decision.reason = "not restarted, as " + rule + " says";
      return decision;
    case EndAction::kRetry:
    case EndAction::kExcludeHost:
      break;
    case EndAction::kRestartJob:
      decision.scope = RestartScope::kJob;
      break;
  }
  if (!consequence && history.restarts >= policy.limit) {
    decision.reason = LimitReached(policy, history);
    return decision;
  }
  decision.restart = true;
  decision.exclude_host = action == EndAction::kExcludeHost && !consequence;
  if (decision.exclude_host) decision.rule = rule;
  decision.counted = !consequence;
  decision.delay = consequence ? policy.backoff : BackoffBefore(policy, history.restarts);
  decision.reason =
      consequence
          ? "restarted, as " + rule +
                " says, without counting it, as another task's death came first"
          : "restart " + std::to_string(history.restarts + 1) + " of " +
                std::to_string(policy.limit) + " in " + FormatDuration(decision.delay) +
                (decision.exclude_host ? " on another host" : "") + ", as " + rule + " says";
  return decision;
}

}  // namespace

std::optional<ExitMatch> ParseExitMatch(const std::string& code) {
  using What = ExitMatch::What;
  if (code == "signal") return ExitMatch{What::kAnySignal, 0, 0};
  if (code == "out-of-memory") return ExitMatch{What::kOutOfMemory, 0, 0};
  if (code == "lost") return ExitMatch{What::kLost, 0, 0};
  for (int signal = 1; signal < NSIG && code.starts_with("SIG"); ++signal) {
    const char* name = sigabbrev_np(signal);
    if (name != nullptr && code.substr(3) == name) return ExitMatch{What::kSignal, signal, signal};
  }
  const size_t dash = code.find('-');
  const auto first = Number(std::string_view(code).substr(0, dash));
  const auto last =
      dash == std::string::npos ? first : Number(std::string_view(code).substr(dash + 1));
  if (!first || !last || *first < 1 || *last > 255 || *first > *last) return std::nullopt;
  return ExitMatch{What::kCodes, *first, *last};
}

bool MatchesEnd(const ExitMatch& match, const TaskEnd& end) {
  using What = ExitMatch::What;
  const bool code = end.kind == EndKind::kExit;
  const bool signal = end.kind == EndKind::kSignal;
  const int as_code = signal ? 128 + end.signal : end.exit_code;
  const int as_signal = signal ? end.signal : end.exit_code - 128;
  switch (match.what) {
    case What::kCodes:
      return (code || signal) && as_code >= match.first && as_code <= match.last;
    case What::kSignal:
      return (code || signal) && as_signal == match.first;
    case What::kAnySignal:
      return signal || (code && as_signal > 0);
    case What::kOutOfMemory:
      return end.kind == EndKind::kOutOfMemory;
    case What::kLost:
      return end.kind == EndKind::kLost;
  }
  return false;
}

bool LineMatches(std::string_view pattern, std::string_view line) {
  size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == line;
  if (!line.starts_with(pattern.substr(0, star))) return false;
  line.remove_prefix(star);
  for (;;) {
    pattern.remove_prefix(star + 1);
    star = pattern.find('*');
    if (star == std::string_view::npos) return line.ends_with(pattern);
    // The earliest match suffices: it leaves the most text for the remaining parts.
    const size_t at = line.find(pattern.substr(0, star));
    if (at == std::string_view::npos) return false;
    line.remove_prefix(at + star);
  }
}

RestartDecision LimitRestarts(const Limits& limits, const RestartHistory& history,
                              RestartDecision decision) {
  if (!decision.restart || !decision.counted || !limits.restarts) return decision;
  if (history.of_job < *limits.restarts) return decision;
  RestartDecision refused;
  refused.exhausted = true;
  refused.reason = "not restarted, as tasks of this job were restarted " +
                   Plural(history.of_job, "time") + " already, and 'limits: restarts' allows " +
                   std::to_string(*limits.restarts);
  return refused;
}

std::chrono::milliseconds BackoffBefore(const Restart& policy, int restarts) {
  std::chrono::milliseconds delay = policy.backoff;
  for (int i = 0; i < restarts && delay < policy.backoff_max && delay.count() > 0; ++i) {
    delay = delay > policy.backoff_max / 2 ? policy.backoff_max : delay * 2;
  }
  return std::min(delay, policy.backoff_max);
}

RestartDecision DecideRestart(const Restart& policy, const TaskEnd& end,
                              const RestartHistory& history, bool consequence) {
  RestartDecision decision;
  decision.scope = policy.scope;
  const EndClass kind = ClassifyEnd(end, history.ooms);
  if (kind == EndClass::kSuccess || kind == EndClass::kCancelled) {
    decision.reason = "it has ended";
    return decision;
  }
  if (policy.when == RestartWhen::kNever) {
    decision.reason = "not restarted, as the job file says 'restart: {when: never}'";
    return decision;
  }
  if (consequence) {
    decision.restart = true;
    decision.delay = policy.backoff;
    decision.reason = "restarted without counting it, as another task's death came first";
    return decision;
  }
  if (policy.when == RestartWhen::kTransient && kind == EndClass::kPermanent) {
    decision.reason = end.kind == EndKind::kOutOfMemory
                          ? "not restarted, as it had run out of memory before; give it more "
                            "memory in 'resources'"
                          : "not restarted, as an exit code from 1 to 127 is the program's own "
                            "error; 'restart: {when: always}' restarts these too";
    return decision;
  }
  if (history.restarts >= policy.limit) {
    decision.reason = LimitReached(policy, history);
    return decision;
  }
  decision.restart = true;
  decision.counted = true;
  decision.delay = BackoffBefore(policy, history.restarts);
  decision.reason = "restart " + std::to_string(history.restarts + 1) + " of " +
                    std::to_string(policy.limit) + " in " + FormatDuration(decision.delay);
  return decision;
}

RestartDecision DecideEnd(const Role& role, const TaskEnd& end, const RestartHistory& history,
                          bool consequence, int log_rule) {
  if (log_rule >= 0 && static_cast<size_t>(log_rule) < role.on_log.size()) {
    const LogRule& rule = role.on_log[static_cast<size_t>(log_rule)];
    return DecideByRule(role.restart, rule.action, history, consequence,
                        "its line that matches '" + rule.line + "' ('on_log')");
  }
  const EndClass kind = ClassifyEnd(end, history.ooms);
  if (kind == EndClass::kTransient || kind == EndClass::kPermanent) {
    for (const ExitRule& rule : role.on_exit) {
      const auto match = ParseExitMatch(rule.code);
      if (!match || !MatchesEnd(*match, end)) continue;
      return DecideByRule(role.restart, rule.action, history, consequence,
                          "'on_exit: {code: " + rule.code + "}'");
    }
  }
  return DecideRestart(role.restart, end, history, consequence);
}

bool IsConsequence(const std::optional<TaskFailure>& first, const TaskFailure& death) {
  if (!first || first->generation != death.generation) return false;
  if (first->role == death.role && first->index == death.index) return false;
  return death.at >= first->at && death.at - first->at <= kConsequenceWindow;
}

}  // namespace shoal::job
