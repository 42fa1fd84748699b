#include "queue/status/queue_status.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace shoal::queue {
namespace {

size_t At(int32_t index) { return static_cast<size_t>(index); }

bool Waits(Phase phase) {
  return phase == Phase::kWaiting || phase == Phase::kDelayed || phase == Phase::kImpossible ||
         phase == Phase::kAssigned;
}

class Reporter {
 public:
  Reporter(const Scheduler& scheduler, const Viewer& viewer, const ReportLimits& limits)
      : scheduler_(scheduler),
        state_(scheduler.state()),
        tree_(state_.tree()),
        viewer_(viewer),
        limits_(limits),
        waiting_(tree_.nodes().size()),
        running_(tree_.nodes().size()),
        nominal_(tree_.flavor_count(), QuotaTree::Usage(tree_.nodes().size())) {}

  QueueReport Run();

 private:
  void CountJobs();
  void AddNominal();
  void AddQueue(NodeIndex node, QueueReport* report);
  FlavorStatus OfFlavor(FlavorIndex flavor, NodeIndex node) const;
  void AddWaiting(NodeIndex leaf, QueueStatus* status);

  const Scheduler& scheduler_;
  const SchedulerState& state_;
  const QuotaTree& tree_;
  const Viewer& viewer_;
  const ReportLimits limits_;
  std::vector<std::vector<JobRef>> waiting_;  // by leaf
  std::vector<int64_t> running_;              // by node, with those below it
  std::vector<QuotaTree::Usage> nominal_;     // [flavor][node], with those below it
  size_t listed_ = 0;
};

void Reporter::CountJobs() {
  for (size_t i = 0; i < state_.job_slots(); ++i) {
    const JobState& job = state_.job(static_cast<JobRef>(i));
    if (Waits(job.phase)) waiting_[At(job.leaf)].push_back(static_cast<JobRef>(i));
    if (job.phase != Phase::kRunning && job.phase != Phase::kLeaving) continue;
    for (const NodeIndex node : tree_.node(job.leaf).path) ++running_[At(node)];
  }
}

void Reporter::AddNominal() {
  for (size_t f = 0; f < nominal_.size(); ++f) {
    for (size_t n = 0; n < tree_.nodes().size(); ++n) {
      const Amounts& own = tree_.cell(static_cast<FlavorIndex>(f), static_cast<NodeIndex>(n)).own;
      for (const NodeIndex above : tree_.nodes()[n].path) nominal_[f][At(above)] += own;
    }
  }
}

FlavorStatus Reporter::OfFlavor(FlavorIndex flavor, NodeIndex node) const {
  FlavorStatus status;
  status.flavor = tree_.flavor_name(flavor);
  const Amounts& held = state_.ledger().held(flavor, node);
  const Amounts available = tree_.Available(flavor, node, state_.ledger().usage(flavor));
  for (size_t r = 0; r < kResources; ++r) {
    ResourceStatus one;
    one.resource = r;
    one.nominal = nominal_[At(flavor)][At(node)][r];
    one.used = held[r];
    one.limited = tree_.Limits(flavor, tree_.node(node).root, r);
    if (one.limited) {
      one.borrowed = std::max<int64_t>(0, one.used - one.nominal);
      one.lent = std::max<int64_t>(0, one.nominal - one.used - std::max<int64_t>(0, available[r]));
    }
    if (one.limited || one.used != 0) status.resources.push_back(one);
  }
  return status;
}

// The first jobs of the line, then those that are put off or can never start.
void Reporter::AddWaiting(NodeIndex leaf, QueueStatus* status) {
  std::vector<JobRef>& jobs = waiting_[At(leaf)];
  const size_t shown = std::min(
      {jobs.size(), limits_.jobs_of_queue, limits_.jobs - std::min(limits_.jobs, listed_)});
  const auto key = [this](JobRef ref) {
    const JobState& job = state_.job(ref);
    const bool aside = job.phase == Phase::kDelayed || job.phase == Phase::kImpossible;
    return std::tuple(aside, -int64_t{job.priority()}, job.spec.order,
                      std::string_view(job.spec.id));
  };
  std::partial_sort(jobs.begin(), jobs.begin() + static_cast<int64_t>(shown), jobs.end(),
                    [&](JobRef a, JobRef b) { return key(a) < key(b); });
  for (size_t i = 0; i < shown; ++i) {
    const JobSpec& spec = state_.job(jobs[i]).spec;
    WaitingJobStatus job;
    if (viewer_.Sees(spec)) {
      job.id = spec.id;
      job.name = spec.name;
      job.user = spec.user;
    }
    job.team = spec.team;
    job.priority = spec.priority;
    job.reason = ReasonText(state_, jobs[i], scheduler_.ReasonOf(jobs[i]), viewer_);
    status->jobs.push_back(std::move(job));
  }
  listed_ += shown;
}

void Reporter::AddQueue(NodeIndex index, QueueReport* report) {
  const QuotaTree::Node& node = tree_.node(index);
  QueueStatus status;
  status.name = node.spec.name;
  status.parent = node.spec.parent;
  status.depth = static_cast<int32_t>(node.path.size()) - 1;
  status.leaf = node.leaf;
  status.mode = node.spec.mode;
  status.weight = node.spec.weight;
  status.share = state_.ledger().share(index);
  status.running = running_[At(index)];
  for (const FlavorIndex flavor : node.flavors) {
    FlavorStatus one = OfFlavor(flavor, index);
    if (!one.resources.empty()) status.flavors.push_back(std::move(one));
  }
  status.waiting = static_cast<int64_t>(waiting_[At(index)].size());
  if (node.leaf) AddWaiting(index, &status);
  const size_t at = report->queues.size();
  report->queues.push_back(std::move(status));
  for (size_t n = 0; n < tree_.nodes().size(); ++n) {
    if (tree_.nodes()[n].parent != index) continue;
    const size_t child = report->queues.size();
    AddQueue(static_cast<NodeIndex>(n), report);
    report->queues[at].waiting += report->queues[child].waiting;
  }
}

QueueReport Reporter::Run() {
  QueueReport report;
  report.default_queue = state_.policy().default_queue;
  CountJobs();
  AddNominal();
  for (size_t n = 0; n < tree_.nodes().size(); ++n) {
    if (tree_.nodes()[n].parent == kNoIndex) AddQueue(static_cast<NodeIndex>(n), &report);
  }
  for (size_t f = 0; f < tree_.flavor_count(); ++f) {
    const FlavorCapacity& capacity = state_.arenas().capacity(static_cast<FlavorIndex>(f));
    MachineStatus machines;
    machines.flavor = tree_.flavor_name(static_cast<FlavorIndex>(f));
    machines.used = capacity.held;
    for (size_t r = 0; r < kResources; ++r) {
      if (capacity.total[r] < kUnlimited) machines.total[r] = capacity.total[r];
    }
    report.machines.push_back(std::move(machines));
  }
  return report;
}

}  // namespace

QueueReport ReportQueues(const Scheduler& scheduler, const Viewer& viewer,
                         const ReportLimits& limits) {
  return Reporter(scheduler, viewer, limits).Run();
}

const char* NameOf(QueueMode mode) {
  constexpr const char* kNames[] = {"open", "hold", "drain"};
  return kNames[static_cast<size_t>(mode)];
}

std::optional<QueueMode> ParseQueueMode(const std::string& name) {
  for (const QueueMode mode : {QueueMode::kOpen, QueueMode::kHold, QueueMode::kDrain}) {
    if (name == NameOf(mode)) return mode;
  }
  return std::nullopt;
}

}  // namespace shoal::queue
