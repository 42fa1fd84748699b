#include "rendezvous/lifecycle/success_policy.h"

#include <algorithm>
#include <utility>

#include "job/spec/elastic.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

namespace {

// Completes "worker 3 …".
std::string TextOf(const job::TaskEnd& end) {
  const bool no_start = end.kind == job::EndKind::kExit && !end.detail.empty();
  return no_start ? "could not be started: " + end.detail : job::Describe(end);
}

// Whether the verdict says why the task was not started again: an ordinary exit code explains
// itself.
bool NeedsWhy(const job::TaskEnd& end) {
  return end.kind != job::EndKind::kExit || job::ClassifyEnd(end) == job::EndClass::kTransient;
}

}  // namespace

// Keeps a thousand good ends from costing a scan of a thousand tasks each.
bool SuccessPolicy::VerdictIsOpen() const {
  if (state_->job.success.rule != job::SuccessRule::kAll) return false;
  bool going = false;
  for (size_t r = 0; r < state_->tasks.counts().size(); ++r) {
    const RoleCount& count = state_->tasks.count(r);
    if (count.well < count.final) return false;
    const auto& roles = state_->job.success.roles;
    const bool decides =
        std::find(roles.begin(), roles.end(), state_->job.roles[r].name) != roles.end();
    const bool enough = count.there >= state_->job.roles[r].least();
    const int awaited = count.tasks - (enough ? count.missing : 0);
    going = going || (decides && count.final < awaited);
  }
  return going;
}

void SuccessPolicy::EvaluateSuccess() {
  if (state_->decided || VerdictIsOpen()) return;
  const bool all_final = state_->tasks.AllFinal();
  // While a drain is under way tasks may still save and end well: evaluated when all have ended.
  if (state_->stop != StopMode::kNone && !all_final) return;
  std::vector<job::TaskOutcome> outcomes;
  const Task* culprit = nullptr;
  for (const Task& task : state_->tasks) {
    if (task.scaled_down || state_->tasks.IsOptionalAndAbsent(task)) continue;
    job::TaskOutcome one{state_->job.roles[task.role].name, task.index, job::Outcome::kUnfinished,
                         ""};
    if (task.ended_well()) {
      one.outcome = job::Outcome::kSucceeded;
    } else if (task.final && task.end && task.end->kind == job::EndKind::kCancelled) {
      one.outcome = job::Outcome::kStopped;
      one.reason = job::Describe(*task.end);
    } else if (task.final) {
      one.outcome = job::Outcome::kFailed;
      one.reason = TextOf(*task.end);
      one.ends_job = task.treatment == EndTreatment::kRestartsExhausted;
      one.irreplaceable =
          task.attempts > 0 && job::HoldsOnlyCopies(state_->job, state_->job.roles[task.role]);
      if (culprit == nullptr) culprit = &task;
    }
    outcomes.push_back(std::move(one));
  }
  job::Verdict verdict = job::Judge(state_->job, outcomes);
  if (verdict.kind == job::Verdict::Kind::kUndecided) return;
  if (verdict.kind == job::Verdict::Kind::kSucceeded) {
    return state_->DecideVerdict(job::JobState::kSucceeded, verdict.reason);
  }
  if (state_->stop != StopMode::kNone)
    return state_->DecideVerdict(job::JobState::kCancelled, state_->stop_reason);
  if (culprit != nullptr && !culprit->why_ended.empty() && NeedsWhy(*culprit->end)) {
    verdict.reason += " (" + culprit->why_ended + ")";
  }
  if (culprit != nullptr && !culprit->last_line.empty()) {
    verdict.reason += "; its last line was: " + culprit->last_line;
  }
  state_->DecideVerdict(job::JobState::kFailed, verdict.reason);
}

void SuccessPolicy::RecordVerdict() {
  JournalRecord record = state_->RecordFor(JournalRecord::Kind::kVerdict, -1);
  record.verdict.state = *state_->decided;
  record.verdict.reason = state_->stop_reason;
  record.verdict.gathered = state_->gathered;
  for (const Task& task : state_->tasks) {
    if (task.scaled_down && task.attempts == 0) continue;
    TaskResult result{state_->job.roles[task.role].name, task.index, task.attempts, task.end};
    record.verdict.tasks.push_back(std::move(result));
  }
  const int64_t stored = state_->Record(std::move(record));
  state_->Emit(Kind::kWriteVerdict).after = stored;
}

}  // namespace shoal::rendezvous
