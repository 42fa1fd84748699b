#include "rendezvous/lifecycle/coordinator_core.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

namespace {

// Why the job did not begin: the tasks that have not joined, and what may keep them away.
std::string MissingTasks(const CoreState& state, const HostExclusions& exclusions,
                         bool has_controller) {
  std::string first;
  std::string excluded;
  int missing = 0;
  int all = 0;
  for (int number = 0; number < state.tasks.size(); ++number) {
    const Task& task = state.tasks[number];
    if (!task.scaled_down) ++all;
    if (task.final || (task.launcher && task.launcher->leased)) continue;
    if (missing++ == 0) first = state.tasks.NameOf(number);
    if (excluded.empty()) excluded = exclusions.DescribeExcludedHosts(task.role);
  }
  if (missing > 1) {
    first +=
        " and " + std::to_string(missing - 1) + (missing == 2 ? " other task" : " other tasks");
  }
  return first + " did not join within " + FormatDuration(state.job.limits.gather) + " (" +
         std::to_string(all - missing) + " of " + std::to_string(all) + " tasks had)" +
         (!has_controller ? "; the controller, which has them started, is gone" : "") + excluded;
}

}  // namespace

CoordinatorCore::CoordinatorCore(job::Job job, CoreLimits limits)
    : state_(std::move(job), limits, [this](const JournalRecord& one) { return Apply(one); }) {}

// To the rule that handles this kind of event.
template <typename One>
void CoordinatorCore::Dispatch(const One& event) {
  if constexpr (requires { On(event); }) {
    On(event);
  } else if constexpr (requires { membership_.On(event); }) {
    membership_.On(event);
  } else if constexpr (requires { ends_.On(event); }) {
    ends_.On(event);
  } else if constexpr (requires { stall_.On(event); }) {
    stall_.On(event);
  } else if constexpr (requires { stop_.On(event); }) {
    stop_.On(event);
  } else if constexpr (requires { scaling_.On(event); }) {
    scaling_.On(event);
  } else {
    presence_.On(event);
  }
}

std::vector<Action> CoordinatorCore::Handle(const Event& event, Millis now) {
  state_.now = std::max(now, state_.now);
  std::visit([this](const auto& one) { Dispatch(one); }, event);
  stall_.DetectActivity();
  if (state_.reevaluate) Reevaluate();
  presence_.ExitIfDone();
  // A heartbeat only postpones deadlines: the earlier one does no harm.
  if (state_.rescan || !std::holds_alternative<LauncherHeartbeat>(event)) RecomputeDeadline();
  return std::exchange(state_.actions, {});
}

std::vector<Action> CoordinatorCore::Begin(Millis now, int resumes) {
  state_.now = std::max(now, state_.now);
  if (state_.verdict && state_.suspending() && resumes > state_.resumes) {
    JournalRecord record = state_.RecordFor(JournalRecord::Kind::kResumed, -1);
    record.replicas = resumes;
    state_.Record(std::move(record));
  }
  presence_.Begin();
  state_.rescan = true;
  stall_.Begin();
  for (Task& task : state_.tasks) {
    if (task.launcher) task.launcher->heard = state_.now;
    task.last_activity = state_.now;
  }
  if (state_.seq == 0) {
    JournalRecord record = state_.RecordFor(JournalRecord::Kind::kJob, -1);
    record.state = job::JobState::kStarting;
    state_.Record(std::move(record));
  }
  if (state_.verdict) {
    presence_.AwaitAcknowledgement();
    state_.Emit(Kind::kWriteVerdict);
  } else {
    Reevaluate();
  }
  RecomputeDeadline();
  return std::exchange(state_.actions, {});
}

void CoordinatorCore::Reevaluate() {
  state_.reevaluate = false;
  if (state_.gathering && !state_.ending()) {
    if (!membership_.CanStart()) return;  // no program has run: nothing else can follow
    starter_.IssueGeneration();
    JournalRecord record = state_.RecordFor(JournalRecord::Kind::kJob, -1);
    record.state = job::JobState::kRunning;
    state_.Record(std::move(record));
    starter_.StartAll();
  }
  membership_.ReleaseFromExcludedHosts();
  starter_.FinishGroupRestart();
  scaling_.RecreateLostServers();
  // Each pass may end tasks that had no program, and other roles may follow these.
  bool changed = true;
  while (changed) {
    success_.EvaluateSuccess();
    changed = stop_.DrainForStop();
    changed = stop_.DrainFollowers() || changed;
  }
  starter_.ApplyMembershipChanges();
  const bool all_final = state_.tasks.AllFinal();
  starter_.StartUnblocked();  // after the success rule: not if what a task waited for has failed
  stop_.ReleaseFinished();
  if (!all_final || !state_.decided || state_.verdict) return;
  success_.RecordVerdict();
  presence_.AwaitAcknowledgement();
  membership_.RefuseWaiting("the job has ended");
}

void CoordinatorCore::On(const Tick&) {
  state_.rescan = true;
  if (!state_.verdict) {
    for (int number = 0; number < state_.tasks.size(); ++number) {
      membership_.CheckLauncher(number);
      stop_.CheckDraining(number);
      starter_.StartIfDue(number);
    }
    starter_.FinishGroupRestart();
    starter_.StartUnblocked();
    CheckJobDeadlines();
    stall_.CheckStall();
  }
}

// ---- Deadlines ----------------------------------------------------------------------------------

void CoordinatorCore::CheckJobDeadlines() {
  if (state_.decided) return;
  if (state_.gathering && state_.stop == StopMode::kNone && membership_.CanStart()) {
    state_.reevaluate = true;
    return;
  }
  if (state_.gathering && state_.now >= state_.gather_from + state_.job.limits.gather &&
      state_.stop == StopMode::kNone) {
    return state_.DecideVerdict(job::JobState::kFailed,
                                MissingTasks(state_, exclusions_, presence_.connected()), false);
  }
  if (!state_.gathering) CheckSlots();
  if (state_.decided) return;
  if (state_.job.limits.deadline.count() > 0 && !state_.gathering &&
      state_.now >= state_.running_since + state_.job.limits.deadline) {
    return state_.DecideVerdict(job::JobState::kFailed,
                                "the job exceeded its deadline of " +
                                    FormatDuration(state_.job.limits.deadline) +
                                    " ('limits: deadline')");
  }
  presence_.CheckAbandoned();
}

// Slots that have had no launcher for too long.
void CoordinatorCore::CheckSlots() {
  for (int number = 0; number < state_.tasks.size(); ++number) {
    const Task& task = state_.tasks[number];
    if (task.final || (task.launcher && task.launcher->leased)) continue;
    if (state_.now < task.unassigned_since + state_.job.limits.gather) continue;
    if (state_.tasks.role_of(number).elastic()) {
      scaling_.AbandonTask(number, "no launcher came within " +
                                       FormatDuration(state_.job.limits.gather) +
                                       exclusions_.DescribeExcludedHosts(task.role));
      continue;
    }
    return state_.DecideVerdict(job::JobState::kFailed,
                                state_.tasks.NameOf(number) +
                                    " was lost, and no new launcher came within " +
                                    FormatDuration(state_.job.limits.gather) +
                                    exclusions_.DescribeExcludedHosts(task.role));
  }
}

// Deadlines mostly move away (a heartbeat postpones them), and an early tick does no harm: so only
// touched tasks are considered, and all of them after a tick or a change that concerns all.
void CoordinatorCore::RecomputeDeadline() {
  const bool all = std::exchange(state_.rescan, false);
  if (all || state_.verdict) next_.reset();
  const std::vector<int> touched = std::exchange(state_.touched, {});
  if (state_.verdict) return ConsiderDeadline(presence_.ExitDeadline());
  if (group_.pending() && *group_.due() > state_.now) ConsiderDeadline(group_.due());
  if (all) {
    for (int number = 0; number < state_.tasks.size(); ++number) ConsiderDeadline(number);
  } else {
    for (const int number : touched) ConsiderDeadline(number);
  }
  if (state_.decided) return;
  const bool gathers = state_.gathering && state_.stop == StopMode::kNone;
  if (gathers) ConsiderDeadline(state_.gather_from + state_.job.limits.gather);
  if (gathers && membership_.HasMinimumLeased()) {
    ConsiderDeadline(state_.last_leased + state_.limits.elastic_join_window);
  }
  if (state_.job.limits.deadline.count() > 0 && !state_.gathering) {
    ConsiderDeadline(state_.running_since + state_.job.limits.deadline);
  }
  ConsiderDeadline(stall_.NextDeadline());
  ConsiderDeadline(presence_.AbandonDeadline());
}

void CoordinatorCore::ConsiderDeadline(std::optional<Millis> when) {
  if (when) next_ = std::min(next_.value_or(*when), *when);
}

void CoordinatorCore::ConsiderDeadline(int number) {
  const Task& task = state_.tasks[number];
  if (task.final) return;
  if (task.launcher) {
    ConsiderDeadline(task.launcher->heard +
                     (task.launcher->suspected ? state_.limits.dead : state_.limits.suspect));
  } else if (!state_.gathering && !state_.decided) {
    ConsiderDeadline(task.unassigned_since + state_.job.limits.gather);
  }
  if (task.state == job::TaskState::kDraining) ConsiderDeadline(task.drain.kill_at);
  const bool startable = !state_.gathering && !task.running() && state_.stop == StopMode::kNone &&
                         task.launcher && task.launcher->leased && task.launcher->member != 0;
  // A blocked task is considered again when what blocks it has ended, not when time has passed.
  if (startable && (task.due > state_.now || !starter_.IsStartBlocked(number)))
    ConsiderDeadline(task.due);
}

}  // namespace shoal::rendezvous
