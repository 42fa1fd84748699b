#include "rendezvous/lifecycle/stall_detector.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

bool StallDetector::CanStall() const {
  if (state_->job.limits.stall.count() == 0 || state_->gathering || stalled_ || state_->decided)
    return false;
  if (state_->stop != StopMode::kNone || group_->pending()) return false;
  return std::any_of(state_->tasks.counts().begin(), state_->tasks.counts().end(),
                     [](const RoleCount& one) { return one.active > 0; });
}

void StallDetector::NoteActivity(Task* task, Millis idle) {
  task->last_activity = std::max(task->last_activity, state_->now - idle);
  last_activity_ = std::max(last_activity_, task->last_activity);
}

void StallDetector::DetectActivity() {
  if (inspect_until_ && state_->now < last_activity_ + state_->job.limits.stall)
    inspect_until_.reset();
  if (!stalled_ || state_->decided || group_->pending() || last_activity_ <= stalled_at_) return;
  JournalRecord record = state_->RecordFor(JournalRecord::Kind::kMoving, -1);
  record.text = "the job makes progress again";
  state_->Record(std::move(record));
}

void StallDetector::CheckStall() {
  if (!CanStall()) {
    inspect_until_.reset();
  } else if (!inspect_until_ && state_->now >= last_activity_ + state_->job.limits.stall) {
    RequestDiagnostics();
  } else if (inspect_until_ && state_->now >= *inspect_until_) {
    DeclareStalled();
  }
}

std::vector<int> StallDetector::LongestIdleTasks() const {
  std::vector<int> tasks;
  for (int number = 0; number < state_->tasks.size(); ++number) {
    if (state_->tasks[number].running()) tasks.push_back(number);
  }
  std::stable_sort(tasks.begin(), tasks.end(), [this](int a, int b) {
    return state_->tasks[a].last_activity < state_->tasks[b].last_activity;
  });
  return tasks;
}

void StallDetector::RequestDiagnostics() {
  inspect_until_ = state_->now + state_->limits.diagnostics;
  for (Task& task : state_->tasks) {
    task.inspection.asked = false;
    task.inspection.diagnostics.reset();
  }
  int asked = 0;
  for (const int number : LongestIdleTasks()) {
    Task& task = state_->tasks[number];
    if (asked == state_->limits.max_inspected_tasks) break;
    if (!task.connected()) continue;
    task.inspection.asked = true;
    ++asked;
    state_->Emit(Kind::kInspect, number).attempt = task.attempt;
  }
}

void StallDetector::On(const StallDiagnostics& event) {
  const auto number = state_->tasks.TaskOf(event.member);
  if (!number) return;
  Task& task = state_->tasks[*number];
  task.launcher->heard = state_->now;
  if (!task.running() || event.attempt != task.attempt) return;
  if (event.still) NoteActivity(&task, *event.still);
  if (!inspect_until_ || !task.inspection.asked || task.inspection.diagnostics) return;
  const bool fits = ToText(event.body).size() <= state_->limits.max_diagnostics_bytes;
  task.inspection.diagnostics = fits ? event.body : json::object{{"too_long", true}};
  const bool all = std::all_of(state_->tasks.begin(), state_->tasks.end(), [](const Task& one) {
    return !one.inspection.asked || !one.running() || one.inspection.diagnostics;
  });
  if (!all || !CanStall() || state_->now < last_activity_ + state_->job.limits.stall) return;
  DeclareStalled();
}

json::object StallDetector::DiagnosticsOf(const Task& task) const {
  json::object answer = task.inspection.diagnostics.value_or(json::object{{"silent", true}});
  answer["role"] = state_->job.roles[task.role].name;
  answer["index"] = task.index;
  answer["attempt"] = task.attempt;
  answer["still_ms"] = (state_->now - task.last_activity).count();
  return answer;
}

int StallDetector::MaxStallRestarts() const {
  int limit = 0;
  for (const job::Role& role : state_->job.roles) limit = std::max(limit, role.restart.limit);
  return limit;
}

void StallDetector::DeclareStalled() {
  inspect_until_.reset();
  json::array tasks;
  const std::vector<int> idle = LongestIdleTasks();
  for (const int number : idle) {
    if (static_cast<int>(tasks.size()) == state_->limits.max_inspected_tasks) break;
    tasks.push_back(DiagnosticsOf(state_->tasks[number]));
  }
  JournalRecord record = state_->RecordFor(JournalRecord::Kind::kStalled, -1);
  if (idle.size() > tasks.size()) record.body["more_tasks"] = idle.size() - tasks.size();
  record.body["tasks"] = std::move(tasks);
  const bool restart = state_->job.limits.on_stall == job::OnStall::kRestart;
  const bool left =
      stall_restarts_ < MaxStallRestarts() &&
      (!state_->job.limits.restarts || policy_->restarts() < *state_->job.limits.restarts);
  record.counted = restart && left;
  std::string text =
      "stalled: no task has printed or reported anything, computed or used the "
      "network for " +
      FormatDuration(state_->job.limits.stall) + " ('limits: stall')";
  if (restart && left) {
    text += "; all tasks are started again, restart " + std::to_string(stall_restarts_ + 1) +
            " of " + std::to_string(MaxStallRestarts()) + " for this";
  } else if (restart) {
    text += ", and no restart is left";
  }
  record.text = text;
  state_->Record(std::move(record));
  if (restart && left) {
    RestartStalled();
  } else if (restart || state_->job.limits.on_stall == job::OnStall::kFail) {
    state_->DecideVerdict(job::JobState::kFailed, "the job " + text);
  }
}

// As after a death of scope job: tasks that have ended well start again too, as others may need
// them.
void StallDetector::RestartStalled() {
  const std::vector<int> idle = LongestIdleTasks();
  if (idle.empty()) return;
  JournalRecord restart = state_->RecordFor(JournalRecord::Kind::kRestart, idle.front());
  restart.scope = job::RestartScope::kJob;
  restart.due = state_->now;
  restart.text = "the job stalled; all its tasks are started again";
  group_->RestartGroup(std::move(restart), "started again, as the job stalled");
  state_->reevaluate = true;
}

void StallDetector::Begin() { last_activity_ = stalled_at_ = state_->now; }

std::optional<Millis> StallDetector::NextDeadline() const {
  if (!CanStall()) return std::nullopt;
  return inspect_until_.value_or(last_activity_ + state_->job.limits.stall);
}

void StallDetector::Apply(const JournalRecord& record) {
  stalled_ = record.kind == JournalRecord::Kind::kStalled;
  stalled_at_ = record.at;
  if (stalled_) state_->stall_seq = record.seq;
  if (record.counted) ++stall_restarts_;
}

void StallDetector::ApplyActivity(const JournalRecord& record) {
  last_activity_ = std::max(last_activity_, record.at);
}

}  // namespace shoal::rendezvous
