#include "queue/why/why.h"

#include <algorithm>
#include <optional>

namespace shoal::queue {
namespace {

// The request with fewer tasks; nothing if the job has none to leave out.
std::optional<Request> WithTasks(const JobSpec& spec, int32_t tasks) {
  if (tasks < 1 || tasks >= spec.request.least) return std::nullopt;
  Request request = spec.request;
  request.least = request.most = tasks;
  return request;
}

std::optional<JobSpec> Changed(const JobSpec& spec, const Change& change) {
  JobSpec changed = spec;
  switch (change.kind) {
    case ChangeKind::kFewerTasks: {
      const std::optional<Request> request = WithTasks(spec, change.tasks);
      if (!request) return std::nullopt;
      changed.request = *request;
      changed.tasks = change.tasks;
      break;
    }
    case ChangeKind::kFlavor:
      changed.flavors = {change.name};
      break;
    case ChangeKind::kQueue:
      changed.queue = change.name;
      break;
    case ChangeKind::kPriority:
      changed.priority = change.priority;
      break;
  }
  return changed;
}

class Search {
 public:
  Search(const Scheduler& scheduler, JobRef job, const WhyLimits& limits)
      : scheduler_(scheduler), job_(job), limits_(limits), spec_(scheduler.job(job).spec) {}

  std::vector<Change> Run();

 private:
  bool Try(Change change);
  void FewerTasks();
  void OtherFlavors();
  void OtherQueues();
  void HigherPriority();

  const Scheduler& scheduler_;
  const JobRef job_;
  const WhyLimits limits_;
  const JobSpec& spec_;
  std::vector<Change> found_;
};

bool Search::Try(Change change) {
  const Trial trial = TryChange(scheduler_, job_, change);
  if (!trial.starts) return false;
  change.preempts = trial.preempts;
  found_.push_back(std::move(change));
  return true;
}

// From the most tasks down: fewer need not be better, since a smaller job of the same run time may
// still delay a reserved one, but the first that starts is the smallest change.
void Search::FewerTasks() {
  for (int32_t tasks = spec_.request.least - 1; tasks >= 1; --tasks) {
    Change change;
    change.kind = ChangeKind::kFewerTasks;
    change.tasks = tasks;
    if (Try(std::move(change))) return;
  }
}

void Search::OtherFlavors() {
  if (spec_.flavors.empty()) return;
  const NodeIndex leaf = scheduler_.job(job_).leaf;
  for (const FlavorIndex flavor : scheduler_.state().tree().node(leaf).flavors) {
    Change change;
    change.kind = ChangeKind::kFlavor;
    change.name = scheduler_.state().tree().flavor_name(flavor);
    const bool allowed =
        std::find(spec_.flavors.begin(), spec_.flavors.end(), change.name) != spec_.flavors.end();
    if (!allowed && Try(std::move(change))) return;
  }
}

void Search::OtherQueues() {
  size_t tried = 0;
  for (const QuotaTree::Node& node : scheduler_.state().tree().nodes()) {
    if (!node.leaf || node.spec.name == spec_.queue) continue;
    if (++tried > limits_.queues) return;
    Change change;
    change.kind = ChangeKind::kQueue;
    change.name = node.spec.name;
    if (Try(std::move(change))) return;
  }
}

void Search::HigherPriority() {
  for (int32_t step = 1; step <= limits_.priorities; ++step) {
    Change change;
    change.kind = ChangeKind::kPriority;
    change.priority = spec_.priority + 10 * step;
    if (Try(std::move(change))) return;
  }
}

std::vector<Change> Search::Run() {
  FewerTasks();
  OtherFlavors();
  OtherQueues();
  HigherPriority();
  return std::move(found_);
}

}  // namespace

Trial TryChange(const Scheduler& scheduler, JobRef job, const Change& change) {
  const std::optional<JobSpec> changed = Changed(scheduler.job(job).spec, change);
  if (!changed) return {};
  Scheduler copy = scheduler;
  const Millis now = copy.state().now();
  copy.End(job, now);
  const Result<JobRef> submitted = copy.Submit(*changed, now);
  if (!submitted.ok()) return {};
  Trial trial;
  for (const Decision& decision : copy.Decide(now)) {
    trial.preempts |= decision.beneficiary == *submitted;
    trial.starts |= decision.job == *submitted && decision.action == Action::kAdmit;
  }
  trial.starts |= copy.job(*submitted).phase == Phase::kAssigned;
  return trial;
}

std::vector<Change> ChangesThatStart(const Scheduler& scheduler, JobRef job,
                                     const WhyLimits& limits) {
  const Phase phase = scheduler.job(job).phase;
  if (phase != Phase::kWaiting && phase != Phase::kImpossible) return {};
  return Search(scheduler, job, limits).Run();
}

std::string ChangeText(const Scheduler& scheduler, JobRef job, const Change& change) {
  const JobSpec& spec = scheduler.job(job).spec;
  std::string text;
  switch (change.kind) {
    case ChangeKind::kFewerTasks:
      text = "with " + std::to_string(change.tasks) + (change.tasks == 1 ? " task" : " tasks") +
             (spec.role.empty() ? "" : " of role " + spec.role) + " instead of " +
             std::to_string(spec.request.least);
      break;
    case ChangeKind::kFlavor:
      text = "on flavor " + change.name;
      break;
    case ChangeKind::kQueue:
      text = "in queue " + change.name;
      break;
    case ChangeKind::kPriority:
      text = "with priority " + std::to_string(change.priority);
      break;
  }
  return text + (change.preempts ? ", which takes resources from other jobs" : "");
}

}  // namespace shoal::queue
