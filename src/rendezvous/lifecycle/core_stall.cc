// A job that stands still: no task prints, reports, computes or uses the network. First its
// launchers say what its processes are doing, that is recorded, and then what the job file says of
// it is done.
#include <algorithm>

#include "base/clock.h"
#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

// Programs run, and nobody is about to stop or start them: those have deadlines of their own.
bool CoordinatorCore::CanStall() const {
  if (job_.limits.stall.count() == 0 || gathering_ || stalled_ || decided_) return false;
  if (stop_ != StopMode::kNone || group_restart_due_) return false;
  return std::any_of(counts_.begin(), counts_.end(),
                     [](const RoleCount& one) { return one.active > 0; });
}

void CoordinatorCore::NoteActivity(Task* task, Millis still) {
  task->last_activity = std::max(task->last_activity, now_ - still);
  last_activity_ = std::max(last_activity_, task->last_activity);
}

void CoordinatorCore::DetectActivity() {
  if (inspect_until_ && now_ < last_activity_ + job_.limits.stall) inspect_until_.reset();
  if (!stalled_ || decided_ || group_restart_due_ || last_activity_ <= stalled_at_) return;
  JournalRecord record = RecordFor(JournalRecord::Kind::kMoving, -1);
  record.text = "the job moves again";
  Record(std::move(record));
}

void CoordinatorCore::CheckStall() {
  if (!CanStall()) {
    inspect_until_.reset();
  } else if (!inspect_until_ && now_ >= last_activity_ + job_.limits.stall) {
    RequestDiagnostics();
  } else if (inspect_until_ && now_ >= *inspect_until_) {
    DeclareStalled();
  }
}

// Active tasks, who has stood still for the longest first.
std::vector<int> CoordinatorCore::LongestIdleTasks() const {
  std::vector<int> tasks;
  for (int number = 0; number < task_count(); ++number) {
    if (tasks_[static_cast<size_t>(number)].active) tasks.push_back(number);
  }
  std::stable_sort(tasks.begin(), tasks.end(), [this](int a, int b) {
    return tasks_[static_cast<size_t>(a)].last_activity <
           tasks_[static_cast<size_t>(b)].last_activity;
  });
  return tasks;
}

void CoordinatorCore::RequestDiagnostics() {
  inspect_until_ = now_ + limits_.diagnostics;
  for (Task& task : tasks_) {
    task.asked = false;
    task.diagnostics.reset();
  }
  int asked = 0;
  for (const int number : LongestIdleTasks()) {
    Task& task = tasks_[static_cast<size_t>(number)];
    if (asked == limits_.max_inspected_tasks) break;
    if (!task.launcher || task.launcher->member == 0) continue;
    task.asked = true;
    ++asked;
    Emit(Kind::kInspect, number).attempt = task.attempt;
  }
}

void CoordinatorCore::On(const StallDiagnostics& event) {
  const auto number = TaskOf(event.member);
  if (!number) return;
  Task& task = tasks_[static_cast<size_t>(*number)];
  task.launcher->heard = now_;
  if (!task.active || event.attempt != task.attempt) return;
  if (event.still) NoteActivity(&task, *event.still);
  if (!inspect_until_ || !task.asked || task.diagnostics) return;
  const bool fits = ToText(event.body).size() <= limits_.max_diagnostics_bytes;
  task.diagnostics = fits ? event.body : json::object{{"too_long", true}};
  const bool all = std::all_of(tasks_.begin(), tasks_.end(), [](const Task& one) {
    return !one.asked || !one.active || one.diagnostics;
  });
  if (!all || !CanStall() || now_ < last_activity_ + job_.limits.stall) return;
  DeclareStalled();
}

json::object CoordinatorCore::DiagnosticsOf(const Task& task) const {
  json::object said = task.diagnostics.value_or(json::object{{"silent", true}});
  said["role"] = job_.roles[task.role].name;
  said["index"] = task.index;
  said["attempt"] = task.attempt;
  said["still_ms"] = (now_ - task.last_activity).count();
  return said;
}

int CoordinatorCore::MaxStallRestarts() const {
  int limit = 0;
  for (const job::Role& role : job_.roles) limit = std::max(limit, role.restart.limit);
  return limit;
}

void CoordinatorCore::DeclareStalled() {
  inspect_until_.reset();
  json::array tasks;
  const std::vector<int> still = LongestIdleTasks();
  for (const int number : still) {
    if (static_cast<int>(tasks.size()) == limits_.max_inspected_tasks) break;
    tasks.push_back(DiagnosticsOf(tasks_[static_cast<size_t>(number)]));
  }
  JournalRecord record = RecordFor(JournalRecord::Kind::kStalled, -1);
  if (still.size() > tasks.size()) record.body["more_tasks"] = still.size() - tasks.size();
  record.body["tasks"] = std::move(tasks);
  const bool restart = job_.limits.on_stall == job::OnStall::kRestart;
  const bool left = stall_restarts_ < MaxStallRestarts() &&
                    (!job_.limits.restarts || restarts_ < *job_.limits.restarts);
  record.counted = restart && left;
  std::string text =
      "stalled: no task has printed or reported anything, computed or used the "
      "network for " +
      FormatDuration(job_.limits.stall) + " ('limits: stall')";
  if (restart && left) {
    text += "; all tasks are started again, restart " + std::to_string(stall_restarts_ + 1) +
            " of " + std::to_string(MaxStallRestarts()) + " for this";
  } else if (restart) {
    text += ", and no restart is left";
  }
  record.text = text;
  Record(std::move(record));
  if (restart && left) {
    RestartStalled();
  } else if (restart || job_.limits.on_stall == job::OnStall::kFail) {
    DecideVerdict(job::JobState::kFailed, "the job " + text);
  }
}

// As with a death of scope job; who has ended well may be waited for by the others, and starts
// again too.
void CoordinatorCore::RestartStalled() {
  const std::vector<int> still = LongestIdleTasks();
  if (still.empty()) return;
  JournalRecord restart = RecordFor(JournalRecord::Kind::kRestart, still.front());
  restart.scope = job::RestartScope::kJob;
  restart.due = now_;
  restart.text = "the job stalled; all its tasks are started again";
  RestartGroup(std::move(restart), "started again, as the job stalled");
  reevaluate_ = true;
}

}  // namespace shoal::rendezvous
