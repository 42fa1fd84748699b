#include "rendezvous/lifecycle/membership.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "rendezvous/lifecycle/attempt_ends.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

std::optional<int> Membership::ChooseTask(const LauncherJoined& event, std::string* why_not) const {
  if (event.index >= 0) {
    const auto task = state_->tasks.Find(event.role, event.index);
    if (!task) {
      *why_not =
          "the job has no task " + event.role + " " + std::to_string(event.index) + " to join as";
    }
    return task;
  }
  std::optional<int> held;
  for (const auto& [name, task] : state_->tasks.numbers()) {
    if (name.first != event.role || state_->tasks[task].final) continue;
    if (!state_->tasks[task].launcher) return task;
    if (!held && state_->tasks[task].launcher->member == 0) held = task;
  }
  if (!held)
    *why_not = "every slot of role '" + event.role + "' is taken, or there is no such role";
  return held;
}

void Membership::On(const LauncherJoined& event) {
  const auto refuse = [&](std::string why) {
    Action& action = state_->Emit(Kind::kRefuse);
    action.member = event.member;
    action.text = std::move(why);
  };
  std::string why_not;
  const auto chosen = ChooseTask(event, &why_not);
  if (!chosen) return refuse(why_not);
  Task& task = state_->tasks[*chosen];
  const bool known = task.launcher && task.launcher->instance == event.instance;
  if (known && (event.generation > state_->generation || event.last_attempt > task.attempt)) {
    // An earlier coordinator died with its last decisions (ADR 96).
    LoseLauncher(*chosen, "its coordinator was lost together with its last decisions");
    return refuse("this coordinator lacks the last decisions of an earlier one");
  }
  if (known) return Rejoin(*chosen, event);
  if (task.final && state_->resumes > 0 &&
      !state_->verdict) {  // ended before the job was suspended
    state_->Emit(Kind::kRelease).member = event.member;
    return;
  }
  if (task.final) return refuse(state_->tasks.NameOf(*chosen) + " has ended already");
  if (state_->verdict) return refuse("the job has ended");
  if (event.has_program) {
    return refuse(state_->tasks.NameOf(*chosen) +
                  " was declared lost while this launcher was away; its program must end");
  }
  if (exclusions_->Contains(task.role, event.node)) {
    refuse("this host, " + event.node + ", is excluded for role " +
           state_->tasks.role_of(*chosen).name + ": " + exclusions_->Reason(task.role, event.node));
    state_->actions.back().excluded = true;
    return;
  }
  if (!task.launcher) return AssignLauncher(*chosen, event);
  if (event.incarnation < task.launcher->incarnation) {
    return refuse("a newer launcher serves " + state_->tasks.NameOf(*chosen));
  }
  JoinOccupiedSlot(*chosen, event);
}

// A later incarnation means that the engine knows the earlier one dead; its connection must be gone
// too.
void Membership::JoinOccupiedSlot(int number, const LauncherJoined& hello) {
  const AssignedLauncher& launcher = *state_->tasks[number].launcher;
  waiting_.push_back({hello, number});
  if (launcher.member == 0 && hello.incarnation > launcher.incarnation) {
    LoseLauncher(number, "its launcher died");
    return;
  }
  Action& action = state_->Emit(Kind::kWait, number);
  action.member = hello.member;
  action.text = "another launcher serves " + state_->tasks.NameOf(number) + "; waiting for its end";
}

void Membership::AssignLauncher(int number, const LauncherJoined& hello) {
  JournalRecord record = state_->RecordFor(JournalRecord::Kind::kLauncherAssigned, number);
  record.incarnation = hello.incarnation;
  record.instance = hello.instance;
  record.node = hello.node;
  state_->Record(std::move(record));
  AssignedLauncher& launcher = *state_->tasks[number].launcher;
  launcher.member = hello.member;
  launcher.heard = state_->now;
  state_->tasks.Connect(hello.member, number);
  Action& action = state_->Emit(Kind::kWelcome, number);
  action.lease = true;
}

void Membership::Rejoin(int number, const LauncherJoined& hello) {
  Task& task = state_->tasks[number];
  if (task.launcher->member != 0) {
    state_->tasks.Disconnect(task.launcher->member);
    Action& action = state_->Emit(Kind::kRefuse);
    action.member = task.launcher->member;
    action.text = "the launcher has connected again";
  }
  task.launcher->member = hello.member;
  task.launcher->heard = state_->now;
  task.launcher->suspected = false;
  state_->tasks.Connect(hello.member, number);
  state_->touched.push_back(number);
  state_->Emit(Kind::kWelcome, number).lease = !task.launcher->leased;
  if (task.final) {
    if (task.end) state_->Emit(Kind::kAck, number).attempt = task.attempt;
    task.released = false;  // the release may have been lost with the connection
    state_->reevaluate = true;
    return;
  }
  if (state_->generation > hello.generation && hello.has_program)
    state_->Emit(Kind::kDescribe, number);
  // The start may have been lost with the connection; launchers take each attempt's only once.
  if (task.running() && hello.last_attempt < task.attempt) {
    state_->Emit(Kind::kStart, number).attempt = task.attempt;
  }
  if (task.state == job::TaskState::kDraining) {
    Action& action = state_->Emit(
        task.drain.last_signal == StopSignal::kKill ? Kind::kKill : Kind::kDrain, number);
    action.attempt = task.attempt;
    action.grace = std::max(task.drain.kill_at - state_->now, Millis(0));
    action.abandon = state_->stop == StopMode::kKill;
    action.text =
        state_->stop_reason.empty() ? "the tasks it follows have ended" : state_->stop_reason;
  }
  starter_->StartIfDue(number);
  state_->reevaluate = true;
}

void Membership::On(const PortsLeased& event) {
  const auto number = state_->tasks.TaskOf(event.member);
  if (!number) return;
  Task& task = state_->tasks[*number];
  task.launcher->heard = state_->now;
  if (task.launcher->leased || task.final) return;
  const bool moved = task.host != event.host || task.ports != event.ports;
  JournalRecord record = state_->RecordFor(JournalRecord::Kind::kLeased, *number);
  record.host = event.host;
  record.ports = event.ports;
  state_->Record(std::move(record));
  state_->reevaluate = true;
  if (state_->gathering) return;
  if (group_->membership_changed(task.role)) return;  // it starts together with the others
  if (moved && !group_->Includes(task.role)) starter_->IssueGeneration();
  starter_->StartIfDue(*number);
}

void Membership::On(const LauncherDisconnected& event) {
  std::erase_if(waiting_, [&](const Waiting& one) { return one.hello.member == event.member; });
  const auto number = state_->tasks.TaskOf(event.member);
  if (!number) return;
  state_->tasks.Disconnect(event.member);
  Task& task = state_->tasks[*number];
  task.launcher->member = 0;
  if (task.final) return;
  if (state_->gathering) return LoseLauncher(*number, "its launcher left");
  for (const Waiting& one : waiting_) {
    if (one.task == *number && one.hello.incarnation > task.launcher->incarnation) {
      return LoseLauncher(*number, "its launcher died");
    }
  }
}

void Membership::On(const LauncherLost& event) {
  const auto number = state_->tasks.Find(event.role, event.index);
  if (!number) return;
  const Task& task = state_->tasks[*number];
  if (task.final || !task.launcher || task.launcher->incarnation > event.incarnation) return;
  LoseLauncher(*number, event.reason.empty() ? "its launcher died" : event.reason);
}

void Membership::LoseLauncher(int number, const std::string& why, const ProgramEnded* last,
                              bool silent) {
  Task& task = state_->tasks[number];
  const MemberId member = std::exchange(task.launcher->member, 0);
  state_->tasks.Disconnect(member);
  if (task.running()) {
    ProgramEnded lost;
    lost.end = job::Lost(why);
    ends_->EndAttempt(number, last != nullptr ? *last : lost);
  }
  if (member != 0 && last != nullptr && task.final) {
    for (const Kind kind : {Kind::kAck, Kind::kRelease}) {
      Action& action = state_->Emit(kind);
      action.member = member;
      action.attempt = task.attempt;
      action.after = task.ended_seq;
    }
  } else if (member != 0) {
    Action& action = state_->Emit(Kind::kRefuse);
    action.member = member;
    action.text = "this launcher was declared lost: " + why;
  }
  if (!task.final) {
    JournalRecord record = state_->RecordFor(JournalRecord::Kind::kLauncherLost, number);
    record.text = why;
    record.restart = silent;
    state_->Record(std::move(record));
  }
  state_->reevaluate = true;
  AssignWaitingLauncher(number);
}

void Membership::AssignWaitingLauncher(int number) {
  const auto first = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& one) { return one.task == number; });
  if (first == waiting_.end()) return;
  const LauncherJoined hello = first->hello;
  waiting_.erase(first);
  On(hello);
}

void Membership::On(const LauncherHeartbeat& event) {
  const auto number = state_->tasks.TaskOf(event.member);
  if (!number) return;
  Task& task = state_->tasks[*number];
  AssignedLauncher& launcher = *task.launcher;
  launcher.heard = state_->now;
  // A launcher that does not report activity counts as active.
  if (task.running() && (!event.still || event.attempt == task.attempt)) {
    stall_->NoteActivity(&task, event.still.value_or(Millis(0)));
  }
  // The program has obeyed; its launcher needs time to store the outputs.
  if (event.storing && event.attempt == task.attempt && state_->stop != StopMode::kKill) {
    task.drain.kill_at = std::max(task.drain.kill_at, state_->now + state_->limits.kill_timeout);
  }
  if (std::exchange(launcher.suspected, false)) {
    state_->Emit(Kind::kNote).text = state_->tasks.NameOf(*number) + " is heard of again";
  }
}

bool Membership::AllLeased() const {
  return std::all_of(state_->tasks.counts().begin(), state_->tasks.counts().end(),
                     [this](const RoleCount& one) {
                       // Tasks that had ended before a suspension need no launcher any more.
                       return one.leased + (state_->resumes > 0 ? one.final : 0) == one.tasks;
                     });
}

bool Membership::CanStart() const {
  if (AllLeased()) return true;
  return HasMinimumLeased() &&
         (state_->now >= state_->last_leased + state_->limits.elastic_join_window ||
          state_->now >= state_->gather_from + state_->job.limits.gather);
}

bool Membership::HasMinimumLeased() const {
  for (size_t r = 0; r < state_->job.roles.size(); ++r) {
    const RoleCount& count = state_->tasks.count(r);
    const bool enough =
        state_->job.roles[r].elastic() && count.there >= state_->job.roles[r].least();
    const int needless = state_->resumes > 0 ? count.final : 0;
    if (count.leased + needless < count.tasks && !enough) return false;
  }
  return true;
}

// The engine learns of the exclusion first: both wait for the same record.
void Membership::ReleaseFromExcludedHosts() {
  if (state_->ending()) return;
  for (int number = 0; number < state_->tasks.size(); ++number) {
    Task& task = state_->tasks[number];
    if (task.running() || task.final || !exclusions_->OnExcludedHost(task)) continue;
    const std::string why = "its host " + task.launcher->node + " is excluded";
    if (task.launcher->member != 0) {
      state_->tasks.Disconnect(task.launcher->member);
      Action& action = state_->Emit(Kind::kRefuse);
      action.member = task.launcher->member;
      action.excluded = true;
      action.after = task.ended_seq;
      action.text = why + ": " + exclusions_->Reason(task.role, task.launcher->node);
    }
    JournalRecord record = state_->RecordFor(JournalRecord::Kind::kLauncherLost, number);
    record.text = why;
    state_->Record(std::move(record));
    AssignWaitingLauncher(number);
  }
}

void Membership::CheckLauncher(int number) {
  Task& task = state_->tasks[number];
  if (task.final || !task.launcher) return;
  const Millis silent = state_->now - task.launcher->heard;
  if (silent >= state_->limits.dead) {
    LoseLauncher(number,
                 "nothing was heard of its launcher for " + FormatDuration(state_->limits.dead),
                 nullptr, /*silent=*/true);
  } else if (silent >= state_->limits.suspect && !task.launcher->suspected) {
    task.launcher->suspected = true;
    state_->Emit(Kind::kNote).text =
        state_->tasks.NameOf(number) + " has not been heard of for " + FormatDuration(silent);
  }
}

void Membership::RefuseWaiting(const std::string& why) {
  for (const Waiting& one : std::exchange(waiting_, {})) {
    Action& action = state_->Emit(Kind::kRefuse);
    action.member = one.hello.member;
    action.text = why;
  }
}

}  // namespace shoal::rendezvous
