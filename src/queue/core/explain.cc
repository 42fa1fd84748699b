// Why a job waits: the checks of round.cc for one job, with the first one that binds.
#include <algorithm>

#include "queue/core/scheduler.h"
#include "queue/core/windows.h"

namespace shoal::queue {
namespace {

size_t At(int32_t index) { return static_cast<size_t>(index); }

// The first resource of `demand` that exceeds `limit`; kResources if none does.
size_t FirstShort(const Amounts& demand, const Amounts& limit) {
  for (size_t r = 0; r < kResources; ++r) {
    if (demand[r] > std::max<int64_t>(limit[r], 0)) return r;
  }
  return kResources;
}

void SetShort(size_t resource, const Amounts& demand, const Amounts& limit, Reason* reason) {
  reason->resource = resource;
  reason->needed = demand[resource];
  reason->available = std::max<int64_t>(limit[resource], 0);
}

// The job of the leaf's arena that holds most of the resource.
JobRef LargestHolder(const SchedulerState& state, const Arena& arena, size_t resource) {
  JobRef most = kNoIndex;
  for (const EndKey& key : arena.ends) {
    const JobState& job = state.job(key.job);
    const int64_t holds = job.Holds(resource);
    if (holds == 0) continue;
    const int64_t before = most == kNoIndex ? 0 : state.job(most).Holds(resource);
    if (holds > before || (holds == before && job.hold_serial < state.job(most).hold_serial))
      most = key.job;
  }
  return most;
}

// The node whose quota leaves the least to the leaf.
NodeIndex BindingNode(const SchedulerState& state, FlavorIndex flavor, NodeIndex leaf,
                      size_t resource) {
  const std::vector<NodeIndex>& path = state.tree().node(leaf).path;
  const QuotaTree::Usage& usage = state.ledger().usage(flavor);
  NodeIndex binding = path.front();
  int64_t available =
      state.tree().cell(flavor, path[0]).subtree[resource] - usage[At(path[0])][resource];
  for (size_t i = 1; i < path.size(); ++i) {
    const QuotaTree::Cell& cell = state.tree().cell(flavor, path[i]);
    const int64_t used = usage[At(path[i])][resource];
    const int64_t most = cell.subtree[resource] - cell.local[resource] -
                         std::max<int64_t>(0, used - cell.local[resource]) + cell.borrow[resource];
    if (most < available) {
      available = most;
      binding = path[i];
    }
    available += std::max<int64_t>(0, cell.local[resource] - used);
  }
  return binding;
}

class Explainer {
 public:
  Explainer(const SchedulerState& state, JobRef job)
      : state_(state), ref_(job), job_(state.job(job)) {}

  Reason Run() const;

 private:
  bool Limit(Reason* reason) const;
  // Why it does not start on this flavor; kFits if it could.
  Reason OnFlavor(FlavorIndex flavor) const;
  void AddPlace(Reason* reason) const;

  const SchedulerState& state_;
  const JobRef ref_;
  const JobState& job_;
};

bool Explainer::Limit(Reason* reason) const {
  const Amounts demand = job_.spec.request.Least();
  for (const int32_t index : state_.lanes().lane(job_.lane).accounts) {
    const Account& account = state_.lanes().account(index);
    const size_t resource = FirstShort(demand, account.Left());
    if (account.TakesJob() && resource == kResources) continue;
    reason->code = ReasonCode::kLimit;
    reason->node = account.node;
    reason->ahead = index;
    if (resource == kResources) {
      reason->resource = kResources;
      reason->needed = account.jobs;
    } else {
      SetShort(resource, demand, account.Left(), reason);
    }
    return true;
  }
  return false;
}

Reason Explainer::OnFlavor(FlavorIndex flavor) const {
  Reason reason;
  reason.flavor = flavor;
  const Arena& arena = *state_.arenas().Of(flavor, job_.leaf);
  const Amounts demand = job_.spec.request.Least();
  const WindowView window =
      ViewWindows(state_.policy(), state_.tree().flavor_name(flavor), state_.now());
  if (!window.Admits(state_.now(), job_.spec.run_time)) {
    reason.code = ReasonCode::kMaintenance;
    reason.until = window.open ? window.next : window.until;
    return reason;
  }
  const Reservation& reservation = arena.reservation;
  if (reservation.job == ref_) reason.until = reservation.at;
  const Amounts quota = state_.tree().Available(flavor, job_.leaf, state_.ledger().usage(flavor));
  if (const size_t r = FirstShort(demand, quota); r < kResources) {
    reason.code = ReasonCode::kQuota;
    SetShort(r, demand, quota, &reason);
    reason.node = BindingNode(state_, flavor, job_.leaf, r);
    reason.other = LargestHolder(state_, arena, r);
    return reason;
  }
  const Amounts free = state_.Available(flavor, job_.leaf);
  if (const size_t r = FirstShort(demand, free); r < kResources) {
    reason.code = ReasonCode::kCapacity;
    SetShort(r, demand, free, &reason);
    reason.other = LargestHolder(state_, arena, r);
    return reason;
  }
  if (reservation.job != kNoIndex && reservation.job != ref_) {
    const Amounts beside = state_.ShadowAvailable(arena, job_.leaf);
    const size_t r = FirstShort(demand, beside);
    const bool ends_before = reservation.at < kForever && !reservation.missed &&
                             job_.spec.run_time > Millis(0) &&
                             state_.now() + job_.spec.run_time <= reservation.at;
    if (r < kResources && !ends_before) {
      reason.code = ReasonCode::kReserved;
      SetShort(r, demand, beside, &reason);
      reason.other = reservation.job;
      reason.until = reservation.at;
      return reason;
    }
  }
  reason.code = ReasonCode::kFits;
  return reason;
}

// Number of jobs before it, and whether the order of its queue holds it back.
void Explainer::AddPlace(Reason* reason) const {
  const WaitingLines& lines = state_.lanes().lines();
  size_t ahead = 0;
  JobRef first = kNoIndex;
  for (const int32_t index : state_.lanes().OfLeaf(job_.leaf)) {
    const WaitingLines::Line line = state_.lanes().lane(index).line;
    ahead += lines.CountBefore(line, ref_);
    const JobRef head = lines.First(line);
    if (head != kNoIndex && (first == kNoIndex || lines.Before(head, first))) first = head;
  }
  const QueueOrder order = state_.tree().node(job_.leaf).spec.order;
  const bool strict = order == QueueOrder::kStrict || !state_.policy().backfill;
  if (strict && ahead > 0 && reason->code != ReasonCode::kMaintenance) {
    *reason = {};
    reason->code = ReasonCode::kBehind;
    reason->other = first;
  }
  reason->ahead = static_cast<int32_t>(ahead);
}

Reason Explainer::Run() const {
  Reason reason;
  switch (job_.phase) {
    case Phase::kImpossible:
      return Impossible(state_, job_);
    case Phase::kDelayed:
      reason.code = ReasonCode::kDelayed;
      reason.until = job_.not_before;
      return reason;
    case Phase::kAssigned:
      reason.code = ReasonCode::kVictims;
      reason.flavor = job_.flavor;
      reason.needed = job_.victims;
      for (const EndKey& key : state_.arenas().Of(job_.flavor, job_.leaf)->ends) {
        if (state_.job(key.job).beneficiary == ref_) reason.other = key.job;
      }
      return reason;
    case Phase::kWaiting:
      break;
    case Phase::kFree:
    case Phase::kRunning:
    case Phase::kLeaving:
      return reason;
  }
  if (state_.tree().node(job_.leaf).spec.mode != QueueMode::kOpen) {
    reason.code = ReasonCode::kHeld;
    reason.node = job_.leaf;
    return reason;
  }
  if (Limit(&reason)) return reason;
  // The flavor on which the job is nearest to its start.
  std::optional<Reason> best;
  for (const FlavorIndex flavor : state_.tree().node(job_.leaf).flavors) {
    if ((job_.flavor_mask & (1U << flavor)) == 0) continue;
    const Reason found = OnFlavor(flavor);
    if (!best || found.code == ReasonCode::kFits ||
        (best->code != ReasonCode::kFits && found.until < best->until))
      best = found;
  }
  reason = *best;
  AddPlace(&reason);
  return reason;
}

}  // namespace

uint32_t AllowedFlavors(const SchedulerState& state, const JobState& job) {
  uint32_t mask = 0;
  for (const FlavorIndex flavor : state.tree().node(job.leaf).flavors) {
    const Flavor& spec = state.policy().flavors[At(flavor)];
    const std::vector<std::string>& wanted = job.spec.flavors;
    const bool named =
        wanted.empty() || std::find(wanted.begin(), wanted.end(), spec.name) != wanted.end();
    const bool engine =
        spec.engine.empty() || job.spec.engine.empty() || spec.engine == job.spec.engine;
    if (named && engine) mask |= 1U << flavor;
  }
  return mask;
}

Reason Impossible(const SchedulerState& state, const JobState& job) {
  Reason reason;
  const Amounts demand = job.spec.request.Least();
  if (job.flavor_mask == 0) {
    reason.code = ReasonCode::kNoFlavor;
    reason.node = job.leaf;
    return reason;
  }
  for (const int32_t index : state.lanes().lane(job.lane).accounts) {
    const Account& account = state.lanes().account(index);
    const Amounts most = account.Left() + account.held;
    const size_t r = FirstShort(demand, most);
    if (r == kResources && (!account.limit.jobs || *account.limit.jobs > 0)) continue;
    reason.code = ReasonCode::kExceedsLimit;
    reason.node = account.node;
    reason.ahead = index;
    if (r == kResources) {
      reason.resource = kResources;
    } else {
      SetShort(r, demand, most, &reason);
    }
    return reason;
  }
  for (const FlavorIndex flavor : state.tree().node(job.leaf).flavors) {
    if ((job.flavor_mask & (1U << flavor)) == 0) continue;
    const FlavorCapacity& capacity = state.arenas().capacity(flavor);
    const Amounts quota = state.tree().Most(flavor, job.leaf);
    const std::pair<ReasonCode, std::pair<Amounts, Amounts>> checks[] = {
        {ReasonCode::kExceedsQuota, {demand, quota}},
        {ReasonCode::kExceedsCapacity, {demand, capacity.total}},
        {ReasonCode::kTaskTooLarge, {job.spec.request.largest_task, capacity.largest_node}}};
    Reason here;
    for (const auto& [code, amounts] : checks) {
      const size_t r = FirstShort(amounts.first, amounts.second);
      if (r == kResources) continue;
      here.code = code;
      here.flavor = flavor;
      here.node = job.leaf;
      SetShort(r, amounts.first, amounts.second, &here);
      break;
    }
    if (here.code == ReasonCode::kNone) return here;
    if (reason.code == ReasonCode::kNone) reason = here;
  }
  return reason;
}

Reason Explain(const SchedulerState& state, JobRef job) { return Explainer(state, job).Run(); }

}  // namespace shoal::queue
