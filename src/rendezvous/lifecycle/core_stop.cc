// Gathering, following, judging, stopping, and everything that happens because time has passed.
#include <algorithm>

#include "base/clock.h"
#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

namespace {

// Completes "worker 3 …".
std::string TextOf(const job::TaskEnd& end) {
  const bool no_start = end.kind == job::EndKind::kExit && !end.detail.empty();
  return no_start ? "could not be started: " + end.detail : job::Describe(end);
}

// Whether people must be told why it was not started again: an ordinary exit code needs no words.
bool NeedsWhy(const job::TaskEnd& end) {
  return end.kind != job::EndKind::kExit || job::ClassifyEnd(end) == job::EndClass::kTransient;
}

}  // namespace

std::vector<Action> CoordinatorCore::Begin(Millis now, int resumes) {
  now_ = std::max(now, now_);
  if (verdict_ && suspending() && resumes > resumes_) {
    JournalRecord record = RecordFor(JournalRecord::Kind::kResumed, -1);
    record.replicas = resumes;
    Record(std::move(record));
  }
  controller_due_ = now_ + limits_.controller_start;
  rescan_ = true;
  last_activity_ = stalled_at_ = now_;  // who went on from a journal does not know of longer
  for (Task& task : tasks_) {
    if (task.launcher) task.launcher->heard = now_;
    task.last_activity = now_;
  }
  if (seq_ == 0) {
    JournalRecord record = RecordFor(JournalRecord::Kind::kJob, -1);
    record.state = job::JobState::kStarting;
    Record(std::move(record));
  }
  if (verdict_) {
    exit_by_ = now_ + limits_.linger;
    Emit(Kind::kWriteVerdict);
  } else {
    Reevaluate();
  }
  RecomputeDeadline();
  return std::exchange(actions_, {});
}

// ---- What others ask for ------------------------------------------------------------------------

void CoordinatorCore::On(const ControllerConnected&) {
  ++controllers_;
  controlled_ = true;
}

void CoordinatorCore::On(const ControllerDisconnected&) {
  controllers_ = std::max(0, controllers_ - 1);
  if (controllers_ == 0) controller_due_ = now_ + limits_.controller_loss;
}

void CoordinatorCore::On(const ControllerAlive&) {
  if (controllers_ > 0) return;
  controller_due_ = now_ + limits_.controller_start;
  gather_from_ = now_;  // it has the tasks started
}

void CoordinatorCore::On(const VerdictAcknowledged&) { acked_ = true; }

void CoordinatorCore::On(const Command& event) {
  if (verdict_ || event.mode <= stop_) return;
  JournalRecord record = RecordFor(JournalRecord::Kind::kJob, -1);
  record.state = job::JobState::kFinishing;
  record.stop = event.mode;
  // A job that was stopped is cancelled, however well its tasks then end: they may save what they
  // have, but the work is not done.
  record.decided = decided_.value_or(job::JobState::kCancelled);
  record.text = decided_ ? stop_reason_ : event.reason;
  Record(std::move(record));
  reevaluate_ = true;
}

void CoordinatorCore::On(const LauncherRefused& event) {
  const auto number = Find(event.role, event.index);
  if (!number || tasks_[static_cast<size_t>(*number)].final) return;
  const std::string why = "could not be started: " + event.reason +
                          DescribeExcludedHosts(tasks_[static_cast<size_t>(*number)].role);
  if (role_of(*number).elastic()) return AbandonTask(*number, why);
  DecideVerdict(job::JobState::kFailed, NameOf(*number) + " " + why);
}

// ---- Settling: what follows from what has happened
// -----------------------------------------------

void CoordinatorCore::Reevaluate() {
  reevaluate_ = false;
  if (gathering_ && stop_ == StopMode::kNone && !decided_) {
    if (!CanStart()) return;  // nothing has run, so nothing follows from anything
    IssueGeneration();
    JournalRecord record = RecordFor(JournalRecord::Kind::kJob, -1);
    record.state = job::JobState::kRunning;
    Record(std::move(record));
    for (int number = 0; number < task_count(); ++number) StartIfDue(number);
  }
  ReleaseFromExcludedHosts();
  FinishGroupRestart();
  // Each pass may end tasks that had no program, and others may follow these.
  bool changed = true;
  while (changed) {
    EvaluateSuccess();
    changed = DrainForStop();
    changed = DrainFollowers() || changed;
  }
  ApplyMembershipChanges();
  const bool all_final = AllFinal();
  StartUnblocked();  // who waited for what has failed is not started for it
  ReleaseFinished();
  if (all_final && decided_ && !verdict_) RecordVerdict();
}

bool CoordinatorCore::RoleEnded(const std::string& role) const {
  for (size_t r = 0; r < job_.roles.size(); ++r) {
    if (job_.roles[r].name == role && counts_[r].final < counts_[r].tasks) return false;
  }
  return true;
}

bool CoordinatorCore::DrainFollowers() {
  bool ended = false;
  for (size_t r = 0; r < job_.roles.size(); ++r) {
    const std::string& leader = job_.roles[r].follows;
    if (leader.empty() || !RoleEnded(leader)) continue;
    for (int number = 0; number < task_count(); ++number) {
      if (tasks_[static_cast<size_t>(number)].role != r) continue;
      ended = DrainTask(number, "every task of " + leader + " has ended") || ended;
    }
  }
  return ended;
}

bool CoordinatorCore::DrainForStop() {
  if (stop_ == StopMode::kNone) return false;
  bool ended = false;
  for (int number = 0; number < task_count(); ++number) {
    Task& task = tasks_[static_cast<size_t>(number)];
    if (stop_ == StopMode::kDrain && !job_.roles[task.role].follows.empty() && task.active) {
      continue;
    }
    ended = DrainTask(number, stop_reason_) || ended;
    if (stop_ == StopMode::kKill && task.active && !task.killed) task.kill_at = now_;
    if (stop_ == StopMode::kKill) CheckDraining(number);
  }
  return ended;
}

// Gives true if the task had no program and so has ended by this.
bool CoordinatorCore::DrainTask(int number, const std::string& why) {
  const Task& task = tasks_[static_cast<size_t>(number)];
  if (task.final || task.state == job::TaskState::kDraining) return false;
  if (task.active) {
    const int signal = suspending() ? job_.roles[task.role].checkpoint_signal : 0;
    JournalRecord record = RecordFor(JournalRecord::Kind::kDraining, number);
    record.text = why;
    if (signal != 0) record.due = now_ + 2 * job_.limits.stop_grace;
    Record(std::move(record));
    // That the job is ending comes first: a parameter server that is told to end hands its rows
    // over unless no task is left that needs them, and a worker of ours that saves before it is
    // done ends well only if the job asked for it.
    const std::string& leader = job_.roles[task.role].follows;
    const bool ending = stop_ != StopMode::kNone || decided_;
    const bool reads = !leader.empty() || job_.framework == job::Framework::kShoal;
    if (reads && (ending || (!leader.empty() && RoleEnded(leader)))) Emit(Kind::kDescribe, number);
    Action& action = Emit(Kind::kDrain, number);
    action.attempt = task.attempt;
    action.grace = job_.limits.stop_grace;
    action.signal = signal;
    action.text = why;
    return false;
  }
  JournalRecord record = RecordFor(JournalRecord::Kind::kEnded, number);
  record.end = job::CancelledEnd(why);
  Record(std::move(record));
  return true;
}

bool CoordinatorCore::AllFinal() const {
  return std::all_of(counts_.begin(), counts_.end(),
                     [](const RoleCount& one) { return one.final == one.tasks; });
}

// So that a thousand good ends do not each cost a look at a thousand tasks: nobody has ended badly,
// and of a role all of whose tasks must end well some have not.
bool CoordinatorCore::VerdictIsOpen() const {
  if (job_.success.rule != job::SuccessRule::kAll) return false;
  bool going = false;
  for (size_t r = 0; r < counts_.size(); ++r) {
    if (counts_[r].well < counts_[r].final) return false;
    const auto& roles = job_.success.roles;
    const bool decides = std::find(roles.begin(), roles.end(), job_.roles[r].name) != roles.end();
    const bool enough = counts_[r].there >= job_.roles[r].least();
    const int awaited = counts_[r].tasks - (enough ? counts_[r].missing : 0);
    going = going || (decides && counts_[r].final < awaited);
  }
  return going;
}

void CoordinatorCore::EvaluateSuccess() {
  if (decided_ || VerdictIsOpen()) return;
  const bool all_final = AllFinal();
  // While a drain is under way tasks may still save and end well: judged when all have ended.
  if (stop_ != StopMode::kNone && !all_final) return;
  std::vector<job::TaskOutcome> outcomes;
  const Task* culprit = nullptr;
  for (const Task& task : tasks_) {
    if (task.scaled_down || IsOptionalAndAbsent(task)) continue;
    job::TaskOutcome one{job_.roles[task.role].name, task.index, job::Outcome::kUnfinished, ""};
    if (EndedWell(task)) {
      one.outcome = job::Outcome::kSucceeded;
    } else if (task.final && task.end && task.end->kind == job::EndKind::kCancelled) {
      one.outcome = job::Outcome::kStopped;
      one.reason = job::Describe(*task.end);
    } else if (task.final) {
      one.outcome = job::Outcome::kFailed;
      one.reason = TextOf(*task.end);
      one.ends_job = task.exhausted;
      if (culprit == nullptr) culprit = &task;
    }
    outcomes.push_back(std::move(one));
  }
  job::Verdict verdict = job::Judge(job_, outcomes);
  if (verdict.kind == job::Verdict::Kind::kUndecided) return;
  if (verdict.kind == job::Verdict::Kind::kSucceeded) {
    return DecideVerdict(job::JobState::kSucceeded, verdict.reason);
  }
  if (stop_ != StopMode::kNone) return DecideVerdict(job::JobState::kCancelled, stop_reason_);
  if (culprit != nullptr && !culprit->why_ended.empty() && NeedsWhy(*culprit->end)) {
    verdict.reason += " (" + culprit->why_ended + ")";
  }
  if (culprit != nullptr && !culprit->last_line.empty()) {
    verdict.reason += "; its last line was: " + culprit->last_line;
  }
  DecideVerdict(job::JobState::kFailed, verdict.reason);
}

void CoordinatorCore::DecideVerdict(job::JobState state, const std::string& reason, bool gathered) {
  if (decided_) return;
  JournalRecord record = RecordFor(JournalRecord::Kind::kJob, -1);
  record.state = job::JobState::kFinishing;
  record.decided = state;
  record.text = reason;
  record.gathered = gathered;
  record.stop = std::max(stop_, StopMode::kDrain);
  Record(std::move(record));
  reevaluate_ = true;
}

void CoordinatorCore::RecordVerdict() {
  JournalRecord record = RecordFor(JournalRecord::Kind::kVerdict, -1);
  record.verdict.state = *decided_;
  record.verdict.reason = stop_reason_;
  record.verdict.gathered = gathered_;
  for (const Task& task : tasks_) {
    if (task.scaled_down && task.attempts == 0) continue;
    TaskResult result{job_.roles[task.role].name, task.index, task.attempts, task.end};
    record.verdict.tasks.push_back(std::move(result));
  }
  const int64_t stored = Record(std::move(record));
  exit_by_ = now_ + limits_.linger;
  Emit(Kind::kWriteVerdict).after = stored;
  for (const Waiting& one : std::exchange(waiting_, {})) {
    Action& action = Emit(Kind::kRefuse);
    action.member = one.hello.member;
    action.text = "the job has ended";
  }
}

bool CoordinatorCore::IsAbandoned() const {
  const bool keep = job_.on_controller_loss == job::OnControllerLoss::kKeep;
  return !keep && controllers_ == 0 && now_ >= controller_due_;
}

void CoordinatorCore::ExitIfDone() {
  if (!verdict_ || exited_) return;
  const bool gone = abandoned_ || (!limits_.holds_verdict && IsAbandoned());
  const bool awaited = !acked_ && !gone;
  if (now_ < exit_by_ && (awaited || !members_.empty())) return;
  exited_ = true;
  Emit(Kind::kExit).after = seq_;
}

// ---- Time ---------------------------------------------------------------------------------------

void CoordinatorCore::On(const Tick&) {
  rescan_ = true;
  if (!verdict_) {
    for (int number = 0; number < task_count(); ++number) {
      CheckLauncher(number);
      CheckDraining(number);
      StartIfDue(number);
    }
    FinishGroupRestart();
    StartUnblocked();
    CheckJobDeadlines();
    CheckStall();
  }
}

void CoordinatorCore::CheckLauncher(int number) {
  Task& task = tasks_[static_cast<size_t>(number)];
  if (task.final || !task.launcher) return;
  const Millis silent = now_ - task.launcher->heard;
  if (silent >= limits_.dead) {
    LoseLauncher(number, "nothing was heard of its launcher for " + FormatDuration(limits_.dead),
                 nullptr, /*silent=*/true);
  } else if (silent >= limits_.suspect && !task.launcher->suspected) {
    task.launcher->suspected = true;
    Emit(Kind::kNote).text =
        NameOf(number) + " has not been heard of for " + FormatDuration(silent);
  }
}

void CoordinatorCore::CheckDraining(int number) {
  Task& task = tasks_[static_cast<size_t>(number)];
  if (task.state != job::TaskState::kDraining || now_ < task.kill_at) return;
  if (task.killed) {
    LoseLauncher(number, "it did not end after SIGKILL");
    return;
  }
  task.killed = true;
  task.kill_at = now_ + limits_.kill_timeout;
  touched_.push_back(number);
  Action& action = Emit(Kind::kKill, number);
  action.attempt = task.attempt;
  action.abandon = stop_ == StopMode::kKill;
  action.text = "it did not end within " + FormatDuration(job_.limits.stop_grace);
}

std::string CoordinatorCore::MissingTasks() const {
  std::string first;
  std::string excluded;
  int missing = 0;
  int all = 0;
  for (int number = 0; number < task_count(); ++number) {
    const Task& task = tasks_[static_cast<size_t>(number)];
    if (!task.scaled_down) ++all;
    if (task.final || (task.launcher && task.launcher->leased)) continue;
    if (missing++ == 0) first = NameOf(number);
    if (excluded.empty()) excluded = DescribeExcludedHosts(task.role);
  }
  if (missing > 1) {
    first +=
        " and " + std::to_string(missing - 1) + (missing == 2 ? " other task" : " other tasks");
  }
  return first + " did not join within " + FormatDuration(job_.limits.gather) + " (" +
         std::to_string(all - missing) + " of " + std::to_string(all) + " tasks had)" +
         (controllers_ == 0 ? "; the controller, which has them started, is gone" : "") + excluded;
}

void CoordinatorCore::CheckJobDeadlines() {
  if (decided_) return;
  if (gathering_ && stop_ == StopMode::kNone && CanStart()) {
    reevaluate_ = true;
    return;
  }
  if (gathering_ && now_ >= gather_from_ + job_.limits.gather && stop_ == StopMode::kNone) {
    return DecideVerdict(job::JobState::kFailed, MissingTasks(), false);
  }
  for (int number = 0; !gathering_ && number < task_count(); ++number) {
    const Task& task = tasks_[static_cast<size_t>(number)];
    if (task.final || (task.launcher && task.launcher->leased)) continue;
    if (now_ < task.unassigned_since + job_.limits.gather) continue;
    if (role_of(number).elastic()) {
      AbandonTask(number, "no launcher came within " + FormatDuration(job_.limits.gather) +
                              DescribeExcludedHosts(task.role));
      continue;
    }
    return DecideVerdict(job::JobState::kFailed,
                         NameOf(number) + " was lost, and no new launcher came within " +
                             FormatDuration(job_.limits.gather) + DescribeExcludedHosts(task.role));
  }
  if (job_.limits.deadline.count() > 0 && !gathering_ &&
      now_ >= running_since_ + job_.limits.deadline) {
    return DecideVerdict(job::JobState::kFailed, "the job exceeded its deadline of " +
                                                     FormatDuration(job_.limits.deadline) +
                                                     " ('limits: deadline')");
  }
  if (IsAbandoned()) {
    abandoned_ = true;
    DecideVerdict(
        job::JobState::kCancelled,
        "nobody controlled the job for " +
            FormatDuration(controlled_ ? limits_.controller_loss : limits_.controller_start) +
            ", and it is to stop then ('on_controller_loss: stop')");
  }
}

std::optional<Millis> CoordinatorCore::NextDeadline() const { return next_; }

// Deadlines mostly move away (whoever is heard of puts his off), and an early tick does no harm: so
// only who was touched is looked at, and everybody after a tick or what concerns everybody.
void CoordinatorCore::RecomputeDeadline() {
  const bool all = std::exchange(rescan_, false);
  if (all || verdict_) next_.reset();
  const auto at = [this](Millis when) { next_ = std::min(next_.value_or(when), when); };
  if (verdict_) {
    touched_.clear();
    if (!exited_) at(exit_by_);
    return;
  }
  if (group_restart_due_ && *group_restart_due_ > now_) at(*group_restart_due_);
  if (all) {
    for (int number = 0; number < task_count(); ++number) ConsiderDeadline(number);
  } else {
    for (const int number : touched_) ConsiderDeadline(number);
  }
  touched_.clear();
  if (decided_) return;
  if (gathering_ && stop_ == StopMode::kNone) at(gather_from_ + job_.limits.gather);
  if (gathering_ && stop_ == StopMode::kNone && HasMinimumLeased()) {
    at(last_leased_ + limits_.elastic_join_window);
  }
  if (job_.limits.deadline.count() > 0 && !gathering_) {
    at(running_since_ + job_.limits.deadline);
  }
  if (CanStall()) at(inspect_until_.value_or(last_activity_ + job_.limits.stall));
  const bool keep = job_.on_controller_loss == job::OnControllerLoss::kKeep;
  if (!keep && controllers_ == 0) at(controller_due_);
}

void CoordinatorCore::ConsiderDeadline(int number) {
  const Task& task = tasks_[static_cast<size_t>(number)];
  if (task.final) return;
  const auto at = [this](Millis when) { next_ = std::min(next_.value_or(when), when); };
  if (task.launcher) {
    at(task.launcher->heard + (task.launcher->suspected ? limits_.dead : limits_.suspect));
  } else if (!gathering_ && !decided_) {
    at(task.unassigned_since + job_.limits.gather);
  }
  if (task.state == job::TaskState::kDraining) at(task.kill_at);
  const bool startable = !gathering_ && !task.active && stop_ == StopMode::kNone && task.launcher &&
                         task.launcher->leased && task.launcher->member != 0;
  // What another task holds up is looked at again when that has ended, not when time has passed.
  if (startable && (task.due > now_ || !IsStartBlocked(number))) at(task.due);
}

}  // namespace shoal::rendezvous
