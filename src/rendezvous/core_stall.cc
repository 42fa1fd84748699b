// A job that stands still: no task prints, reports, computes or uses the network. First its
// launchers say what its processes are doing, that is recorded, and then what the job file says of
// it is done.
#include <algorithm>

#include "base/clock.h"
#include "rendezvous/coordinator_core.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

// Programs run, and nobody is about to stop or start them: those have deadlines of their own.
bool CoordinatorCore::MayStall() const {
  if (job_.limits.stall.count() == 0 || gathering_ || stalled_ || decided_) return false;
  if (stop_ != StopMode::kNone || regroup_due_) return false;
  return std::any_of(counts_.begin(), counts_.end(),
                     [](const RoleCount& one) { return one.active > 0; });
}

void CoordinatorCore::Moved(Task* task, Millis still) {
  task->moved = std::max(task->moved, now_ - still);
  moved_ = std::max(moved_, task->moved);
}

void CoordinatorCore::SayWhetherItMoves() {
  if (inspecting_ && now_ < moved_ + job_.limits.stall) inspecting_.reset();
  if (!stalled_ || decided_ || regroup_due_ || moved_ <= stalled_at_) return;
  Fact fact = FactOf(Fact::Kind::kMoving, -1);
  fact.text = "the job moves again";
  Record(std::move(fact));
}

void CoordinatorCore::CheckStall() {
  if (!MayStall()) {
    inspecting_.reset();
  } else if (!inspecting_ && now_ >= moved_ + job_.limits.stall) {
    AskForEvidence();
  } else if (inspecting_ && now_ >= *inspecting_) {
    DeclareStalled();
  }
}

// Active tasks, who has stood still for the longest first.
std::vector<int> CoordinatorCore::Stillest() const {
  std::vector<int> tasks;
  for (int number = 0; number < task_count(); ++number) {
    if (tasks_[static_cast<size_t>(number)].active) tasks.push_back(number);
  }
  std::stable_sort(tasks.begin(), tasks.end(), [this](int a, int b) {
    return tasks_[static_cast<size_t>(a)].moved < tasks_[static_cast<size_t>(b)].moved;
  });
  return tasks;
}

void CoordinatorCore::AskForEvidence() {
  inspecting_ = now_ + limits_.evidence;
  for (Task& task : tasks_) {
    task.asked = false;
    task.evidence.reset();
  }
  int asked = 0;
  for (const int number : Stillest()) {
    Task& task = tasks_[static_cast<size_t>(number)];
    if (asked == limits_.inspected) break;
    if (!task.holder || task.holder->member == 0) continue;
    task.asked = true;
    ++asked;
    Do(Kind::kInspect, number).attempt = task.attempt;
  }
}

void CoordinatorCore::On(const Evidence& event) {
  const auto number = TaskOf(event.member);
  if (!number) return;
  Task& task = tasks_[static_cast<size_t>(*number)];
  task.holder->heard = now_;
  if (!task.active || event.attempt != task.attempt) return;
  if (event.still) Moved(&task, *event.still);
  if (!inspecting_ || !task.asked || task.evidence) return;
  const bool fits = ToText(event.body).size() <= limits_.evidence_bytes;
  task.evidence = fits ? event.body : json::object{{"too_long", true}};
  const bool all = std::all_of(tasks_.begin(), tasks_.end(), [](const Task& one) {
    return !one.asked || !one.active || one.evidence;
  });
  if (!all || !MayStall() || now_ < moved_ + job_.limits.stall) return;
  DeclareStalled();
}

json::object CoordinatorCore::EvidenceOf(const Task& task) const {
  json::object said = task.evidence.value_or(json::object{{"silent", true}});
  said["role"] = job_.roles[task.role].name;
  said["index"] = task.index;
  said["attempt"] = task.attempt;
  said["still_ms"] = (now_ - task.moved).count();
  return said;
}

int CoordinatorCore::RestartsOfStalls() const {
  int limit = 0;
  for (const job::Role& role : job_.roles) limit = std::max(limit, role.restart.limit);
  return limit;
}

void CoordinatorCore::DeclareStalled() {
  inspecting_.reset();
  json::array tasks;
  const std::vector<int> still = Stillest();
  for (const int number : still) {
    if (static_cast<int>(tasks.size()) == limits_.inspected) break;
    tasks.push_back(EvidenceOf(tasks_[static_cast<size_t>(number)]));
  }
  Fact fact = FactOf(Fact::Kind::kStalled, -1);
  if (still.size() > tasks.size()) fact.body["more_tasks"] = still.size() - tasks.size();
  fact.body["tasks"] = std::move(tasks);
  const bool restart = job_.limits.on_stall == job::OnStall::kRestart;
  const bool left = stall_restarts_ < RestartsOfStalls() &&
                    (!job_.limits.restarts || restarts_ < *job_.limits.restarts);
  fact.counted = restart && left;
  std::string text =
      "stalled: no task has printed or reported anything, computed or used the "
      "network for " +
      FormatDuration(job_.limits.stall) + " ('limits: stall')";
  if (restart && left) {
    text += "; all tasks are started again, restart " + std::to_string(stall_restarts_ + 1) +
            " of " + std::to_string(RestartsOfStalls()) + " for this";
  } else if (restart) {
    text += ", and no restart is left";
  }
  fact.text = text;
  Record(std::move(fact));
  if (restart && left) {
    RestartStalled();
  } else if (restart || job_.limits.on_stall == job::OnStall::kFail) {
    DecideVerdict(job::JobState::kFailed, "the job " + text);
  }
}

// As with a death of scope job; who has ended well may be waited for by the others, and starts
// again too.
void CoordinatorCore::RestartStalled() {
  const std::vector<int> still = Stillest();
  if (still.empty()) return;
  Fact restart = FactOf(Fact::Kind::kRestart, still.front());
  restart.scope = job::RestartScope::kJob;
  restart.due = now_;
  restart.text = "the job stalled; all its tasks are started again";
  Regroup(std::move(restart), "started again, as the job stalled");
  unsettled_ = true;
}

}  // namespace shoal::rendezvous
